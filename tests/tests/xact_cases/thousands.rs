//! Many clients on few server connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use sqlock::{Error, Locks, XactBackend};
use tokio::{runtime::Builder, task::JoinSet, time::timeout};

use crate::{
    support::execute,
    world::{Guard, Way, World, on, value},
};

const CLIENTS: usize = 200;
const KEYS: i64 = 20;
const ACQUISITIONS: usize = 10_000;

/// 200 clients through a PgBouncer with 5 server connections contend for 20 keys, with 10,000
/// acquisitions. A counter that is read, held and written in the transaction shows that none
/// overlap.
#[test]
fn two_hundred_clients_on_five_server_connections() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let limit = Duration::from_secs(300);
        timeout(limit, contend())
            .await
            .expect("it comes to its end");
    });
}

async fn contend() {
    let world = World::new(Way::Pooled, &[("default_pool_size", "5")]).await;
    let mut admin = world.database.connect().await;
    let counters = format!(
        "create table counter (key bigint primary key, n bigint not null); \
         insert into counter select key, 0 from generate_series(1, {KEYS}) as key"
    );
    execute(&mut admin, &counters).await;
    let left = Arc::new(AtomicUsize::new(ACQUISITIONS));
    let timeouts = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for seed in 0..CLIENTS {
        // each a process of its own, as far as the pooler can tell
        let locks = on(world.pool(1));
        let (left, timeouts) = (Arc::clone(&left), Arc::clone(&timeouts));
        clients.spawn(async move {
            let mut random = StdRng::seed_from_u64(u64::try_from(seed).unwrap());
            let take = |left: usize| left.checked_sub(1);
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_ok()
            {
                let key = random.random_range(1..=KEYS);
                while !count(&locks, key).await {
                    timeouts.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    while let Some(outcome) = clients.join_next().await {
        outcome.unwrap();
    }
    eprintln!(
        "{} ran into their own time limit",
        timeouts.load(Ordering::Relaxed)
    );
    let sum: i64 = value(&mut admin, "select sum(n)::bigint from counter").await;
    assert_eq!(
        sum,
        i64::try_from(ACQUISITIONS).unwrap(),
        "two held a lock together"
    );
    drop(admin);
    world.is_clean().await;
}

/// Whether the lock was had before the client's own time limit; nothing else may go wrong.
async fn count(locks: &Locks<XactBackend>, key: i64) -> bool {
    let mut guard = match locks.acquire_within(key, Duration::from_secs(10)).await {
        Ok(guard) => guard,
        Err(Error::Timeout { .. }) => return false,
        Err(error) => panic!("{error:?}"),
    };
    let n = read(&mut guard, key).await;
    tokio::task::yield_now().await;
    let update = format!("update counter set n = {} where key = {key}", n + 1);
    execute(guard.connection(), &update).await;
    guard.commit().await.unwrap();
    true
}

async fn read(guard: &mut Guard, key: i64) -> i64 {
    let read = format!("select n from counter where key = {key}");
    value(guard.connection(), &read).await
}
