//! What leases cost the server.

use std::time::Duration;

use sqlock::{Locks, TtlBackend, ttl::Order};
use sqlock_tests::{PostgresServer, TestDatabase, eventually};
use sqlx::PgConnection;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    support::{PATIENCE, ask, execute, run},
    tools::{TTL, create_table, node, node_with, options},
    waits::{World, patient, stand_in_line},
    world::everywhere,
};

/// A refusal writes nothing: no WAL, no dead row.
#[test]
fn a_refused_attempt_writes_no_wal() {
    run(async || {
        let server = PostgresServer::start(&[("wal_writer_delay", "10s")]).await;
        let database = server.database().await;
        create_table(&database).await;
        let holder = node_with(&database, options().ttl(Duration::from_secs(600)));
        let lease = holder.acquire("job").await.unwrap();
        refusals_write_nothing(&database, &node(&database)).await;
        lease.release().await.unwrap();
    });
}

/// Nor does one in a queue, whether the lock is held or waited for.
#[test]
fn a_refused_attempt_in_a_queue_writes_no_wal() {
    run(async || {
        let server = PostgresServer::start(&[("wal_writer_delay", "10s")]).await;
        let world = World::on_server(&server).await;
        let (holder, other) = (world.queueing(patient()), world.queueing(patient()));
        let lease = holder.acquire("job").await.unwrap();
        refusals_write_nothing(&world.database, &other).await;
        lease.release().await.unwrap();
        let mut side = world.database.connect().await;
        stand_in_line(&mut side, "job", 1, "1 h").await;
        refusals_write_nothing(&world.database, &other).await;
    });
}

async fn refusals_write_nothing<O: Order>(database: &TestDatabase, locks: &Locks<TtlBackend<O>>) {
    assert!(locks.try_acquire("job").await.unwrap().is_none());
    let mut side = database.connect().await;
    // the server itself writes now and then, so that one quiet round is proof
    let mut written = Vec::new();
    for _ in 0..5 {
        let before = wal(&mut side).await;
        for _ in 0..20 {
            assert!(locks.try_acquire("job").await.unwrap().is_none());
        }
        written.push(wal(&mut side).await - before);
        if written.contains(&0) {
            break;
        }
    }
    assert!(
        written.contains(&0),
        "bytes of WAL for 20 refusals: {written:?}"
    );
}

async fn wal(connection: &mut PgConnection) -> i64 {
    let statement = "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
    ask(connection, statement).await
}

/// One row that somebody has locked does not delay the renewal of the others.
#[test]
fn a_locked_row_holds_up_only_its_own_lease() {
    everywhere(async |world| {
        let locks = world.node();
        let mut leases = Vec::new();
        for number in 0..20 {
            leases.push(locks.acquire(format!("job-{number:02}")).await.unwrap());
        }
        let mut blocker = world.connect().await;
        execute(
            &mut blocker,
            "begin; select from sqlock_leases where name = 'job-07' for update",
        )
        .await;
        sleep(TTL * 2).await;
        let valid: Vec<_> = leases.iter().map(sqlock::LockGuard::is_valid).collect();
        let expected: Vec<_> = (0..20).map(|number| number != 7).collect();
        assert_eq!(valid, expected);
    });
}

/// Ten thousand leases: ten statements a tick, and nothing between ticks.
#[test]
fn ten_thousand_leases_are_renewed_by_few_statements() {
    run(async || {
        let server = PostgresServer::start(&[("track_activities", "on")]).await;
        let database = server.database().await;
        create_table(&database).await;
        let ttl = Duration::from_secs(12);
        let locks = node_with(&database, options().ttl(ttl));
        let leases = take_many(&locks, 10_000).await;
        // a few ticks, in which they gather
        sleep(ttl).await;
        let mut side = server.connect().await;
        let before = transactions(&mut side, &database).await;
        let started = Instant::now();
        let mut busy = 0;
        for _ in 0..20 {
            sleep(ttl / 30).await;
            let backends = database.backends().await;
            assert!(backends.len() <= 2, "{backends:?}");
            busy += backends
                .iter()
                .filter(|b| b.state.as_deref() != Some("idle"))
                .count();
        }
        // statistics arrive a moment later
        sleep(Duration::from_secs(2)).await;
        let done = transactions(&mut side, &database).await - before;
        let ticks = started.elapsed().as_secs_f64() / (ttl / 3).as_secs_f64();
        let allowed = 10.0 * (ticks + 1.0);
        assert!(
            f64::from(i32::try_from(done).expect("few")) <= allowed,
            "{done} transactions in {ticks:.1} ticks"
        );
        assert!(busy <= 12, "busy in {busy} of 20 looks");
        assert!(leases.iter().all(sqlock::LockGuard::is_valid));
        locks.shutdown().await.unwrap();
    });
}

async fn take_many(locks: &Locks<TtlBackend>, count: usize) -> Vec<crate::tools::Lease> {
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let locks = locks.clone();
        tasks.spawn(async move { locks.acquire(format!("job-{number}")).await.unwrap() });
    }
    tasks.join_all().await
}

async fn transactions(side: &mut PgConnection, database: &TestDatabase) -> i64 {
    let statement = format!(
        "select xact_commit + xact_rollback from pg_stat_database where datname = '{}'",
        database.name()
    );
    ask(side, &statement).await
}

/// Concurrent acquires share transactions.
#[test]
fn many_tasks_share_a_commit() {
    run(async || {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        create_table(&database).await;
        let locks = node(&database);
        let mut side = server.connect().await;
        sleep(Duration::from_secs(2)).await;
        let before = transactions(&mut side, &database).await;
        let leases = take_many(&locks, 1000).await;
        sleep(Duration::from_secs(2)).await;
        let done = transactions(&mut side, &database).await - before;
        assert!(done < 200, "{done} transactions for 1,000 leases");
        drop(leases);
        locks.shutdown().await.unwrap();
    });
}

/// A transaction that fails leaves no connection within it.
#[test]
fn a_failed_transaction_leaves_its_connection_idle() {
    everywhere(async |world| {
        let locks = world.node();
        let mut side = world.connect().await;
        execute(
            &mut side,
            "alter table sqlock_leases add constraint no_x check (name <> 'x' or owner is null)",
        )
        .await;
        for _ in 0..5 {
            locks.try_acquire("x").await.unwrap_err();
        }
        eventually(PATIENCE, async || {
            let backends = world.backends().await;
            backends.iter().all(|backend| {
                backend.state.as_deref() != Some("idle in transaction (aborted)")
                    && backend.state.as_deref() != Some("idle in transaction")
            })
        })
        .await;
        locks.acquire("y").await.unwrap().release().await.unwrap();
    });
}
