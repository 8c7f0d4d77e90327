//! What concurrent tasks of one process share.

use sqlock_tests::PostgresServer;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    support::{ask, run},
    tools::{LeaseLocks, create_table, node_with, options},
};

const TASKS: u32 = 64;
const ROUNDS: u32 = 10;

/// With commits that wait for the disk, one serves many: acquires and releases of 64 tasks on keys of
/// their own are far fewer transactions than they are requests.
#[test]
fn sixty_four_tasks_share_their_commits() {
    run(async || {
        let server = PostgresServer::start(&[("fsync", "on")]).await;
        let database = server.database().await;
        create_table(&database).await;
        let leases = options().ttl(std::time::Duration::from_secs(60));
        let locks = node_with(&database, leases);
        let mut side = database.connect().await;

        let started = Instant::now();
        rounds(locks.clone(), 0).await;
        let alone = started.elapsed() / ROUNDS;

        // every transaction that writes has a number of its own
        let number = "select txid_current()";
        let before: i64 = ask(&mut side, number).await;
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for task in 1..=TASKS {
            tasks.spawn(rounds(locks.clone(), task));
        }
        tasks.join_all().await;
        let together = started.elapsed() / (TASKS * ROUNDS);
        let after: i64 = ask(&mut side, number).await;
        println!("a pair alone takes {alone:?}, of {TASKS} tasks {together:?}");

        let written = after - before - 1;
        let requests = i64::from(TASKS * ROUNDS * 2);
        assert!(
            written * 5 <= requests,
            "{written} transactions for {requests} requests"
        );
        locks.shutdown().await.unwrap();
    });
}

async fn rounds(locks: LeaseLocks, task: u32) {
    for _ in 0..ROUNDS {
        let lease = locks.acquire(format!("key-{task}")).await.unwrap();
        lease.release().await.unwrap();
    }
}
