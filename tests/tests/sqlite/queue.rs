//! Those who wait stand in line, over all processes that use the file.

use std::{path::Path, sync::Arc, time::Duration};

use sqlock::{
    Locks, SqliteBackend, Whose,
    sqlite::{InOrder, LeaseOptions, SqliteOptions},
};
use sqlock_tests::eventually;
use tokio::{sync::Mutex, task::JoinHandle, time::timeout};

use crate::tools::{PATIENCE, place, raw, run};

type QueueLocks = Locks<SqliteBackend<InOrder>>;
type Served = Arc<Mutex<Vec<String>>>;

/// Leases that do not end in the time of a test.
fn patient() -> LeaseOptions {
    LeaseOptions::new()
        .ttl(Duration::from_secs(600))
        .poll_interval(Duration::from_millis(20))
}

async fn node(path: &Path, leases: LeaseOptions) -> QueueLocks {
    let options = SqliteOptions::new().leases(leases).queue();
    Locks::new(options.open(path).await.unwrap())
}

fn wait(locks: &QueueLocks, served: &Served, name: &str, priority: i16) -> JoinHandle<()> {
    let (locks, served, name) = (locks.clone(), Arc::clone(served), name.to_owned());
    tokio::spawn(async move {
        let lock = locks.lock("job").label(name.as_str()).priority(priority);
        let lease = lock.acquire().await.unwrap();
        served.lock().await.push(name);
        lease.release().await.unwrap();
    })
}

async fn until_queued(locks: &QueueLocks, count: usize) {
    eventually(PATIENCE, async || {
        locks.queue("job").await.unwrap().len() == count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_served_by_priority_and_then_by_arrival() {
    let (_directory, path) = place();
    let nodes = [
        node(&path, patient()).await,
        node(&path, patient()).await,
        node(&path, patient()).await,
    ];
    let lease = nodes[0].acquire("job").await.unwrap();
    let served = Served::default();
    let mut tasks = Vec::new();
    let waiters = [("a", 0), ("b", 0), ("c", 7), ("d", -1), ("e", 0), ("f", 7)];
    for (number, (name, priority)) in waiters.iter().enumerate() {
        tasks.push(wait(&nodes[number % 3], &served, name, *priority));
        until_queued(&nodes[0], number + 1).await;
    }
    let queue = nodes[0].queue("job").await.unwrap();
    let labels: Vec<_> = queue
        .iter()
        .filter_map(|one| one.label.as_deref())
        .collect();
    assert_eq!(labels, ["c", "f", "a", "b", "e", "d"]);
    assert_eq!((queue[2].place, queue[2].whose), (3, Whose::Ours));
    assert_eq!((queue[3].place, queue[3].whose), (4, Whose::Theirs));
    lease.release().await.unwrap();
    for task in tasks {
        timeout(PATIENCE, task).await.unwrap().unwrap();
    }
    assert_eq!(*served.lock().await, labels);
    assert_eq!(nodes[0].queue("job").await.unwrap(), []);
}

/// One who waits for another key too is first in line for one that is free: nobody passes, and
/// when it goes, the next is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_does_not_pass_and_who_is_dropped_leaves() {
    let (_directory, path) = place();
    let leases = || patient().waiter_ttl(Duration::from_secs(600));
    let (one, other) = (node(&path, leases()).await, node(&path, leases()).await);
    let held = other.acquire("held").await.unwrap();
    let first = {
        let one = one.clone();
        tokio::spawn(async move { one.acquire_all(["held", "job"]).await.map(drop) })
    };
    until_queued(&other, 1).await;
    assert!(other.try_acquire("job").await.unwrap().is_none());
    assert!(one.try_acquire("job").await.unwrap().is_none());
    let served = Served::default();
    let next = wait(&other, &served, "next", 0);
    until_queued(&other, 2).await;
    assert!(!next.is_finished());
    first.abort();
    timeout(PATIENCE, next).await.unwrap().unwrap();
    until_queued(&other, 0).await;
    held.release().await.unwrap();
}

/// Those of another boot, and those who gave no sign of life, are dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dead_are_passed() {
    let (_directory, path) = place();
    let locks = node(&path, patient()).await;
    let mut side = raw(&path).await;
    run(
        &mut side,
        "insert into sqlock_leases_waiters
           (name, waiter, priority, ticket, boot, since, expires_at)
         values ('job', 'x', 9, 1, 'another', 0, 9000000000000000000)",
    )
    .await;
    let lease = locks.acquire("job").await.unwrap();
    assert_eq!(locks.queue("job").await.unwrap(), []);
    let served = Served::default();
    let next = wait(&locks, &served, "next", 0);
    until_queued(&locks, 1).await;
    lease.release().await.unwrap();
    timeout(PATIENCE, next).await.unwrap().unwrap();
    let left: i64 = sqlx::query_scalar("select count(*) from sqlock_leases_waiters")
        .fetch_one(&mut side)
        .await
        .unwrap();
    assert_eq!(left, 0, "who joins clears them away");
}
