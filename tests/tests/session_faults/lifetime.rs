//! The ends of locks and sessions that have to do with the process: shut-downs, drops, threads and
//! runtimes. And what others see of a session while it is there.

use std::{thread, time::Duration};

use sqlock::{Error, LossCause, Mode};
use sqlock_tests::{TestDatabase, eventually};
use tokio::runtime::Runtime;

use crate::support::{
    PATIENCE, SessionOptions, ask, ids_held, node, node_with, pid_of_holder, run, until_waiting,
    within,
};

/// When `shutdown` returns nothing is held, and the connection is closed.
#[test]
fn shutdown_leaves_neither_locks_nor_a_connection() {
    run(async || {
        let database = TestDatabase::create().await;
        let other = node(&database).await;
        let _others = other.acquire(3).await.unwrap();
        let locks = node(&database).await;
        let one = locks.acquire(1).await.unwrap();
        let two = locks.lock(2).shared().acquire().await.unwrap();
        let waiting = tokio::spawn(locks.lock(3).acquire());
        until_waiting(&database, 1).await;

        locks.shutdown().await.unwrap();

        // nothing of the wait either
        assert_eq!(ids_held(&database).await, [3]);
        assert_eq!(database.advisory_locks().await.len(), 1);
        eventually(PATIENCE, async || database.count_connections().await == 1).await;
        for guard in [one, two] {
            assert_eq!(guard.lost().cause(), Some(LossCause::ShutDown));
        }
        let waited = within(PATIENCE, "the waiter's answer", waiting)
            .await
            .unwrap();
        assert!(matches!(waited, Err(Error::ShutDown { .. })), "{waited:?}");
    });
}

/// Without handles and guards there is no connection. Guards alone keep it, and their locks.
#[test]
fn the_connection_ends_with_the_last_handle_and_guard() {
    run(async || {
        let database = TestDatabase::create().await;
        let locks = node(&database).await;
        drop(locks.acquire(1).await.unwrap());
        drop(locks);
        eventually(PATIENCE, async || database.count_connections().await == 0).await;

        let locks = node(&database).await;
        let guard = locks.acquire(1).await.unwrap();
        drop(locks);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(ids_held(&database).await, [1]);
        guard.check().unwrap();
        drop(guard);
        eventually(PATIENCE, async || database.count_connections().await == 0).await;
        assert_eq!(database.advisory_locks().await, []);
    });
}

/// A guard can be dropped where there is no runtime.
#[test]
fn a_guard_dropped_on_a_plain_thread_frees_the_lock() {
    run(async || {
        let database = TestDatabase::create().await;
        let locks = node(&database).await;
        let guard = locks.acquire(1).await.unwrap();
        assert_eq!(ids_held(&database).await, [1]);
        thread::spawn(move || drop(guard)).join().unwrap();
        database.wait_until_no_advisory_locks(PATIENCE).await;
        // handles too
        thread::spawn(move || drop(locks)).join().unwrap();
        eventually(PATIENCE, async || database.count_connections().await == 0).await;
    });
}

/// Where the runtime of a backend has ended, its locks are lost and free, and the next acquire is
/// in a new session, on the caller's runtime.
#[test]
fn a_backend_is_reborn_on_another_runtime() {
    let first = Runtime::new().unwrap();
    let (database, locks, guard, pid) = first.block_on(async {
        let database = TestDatabase::create().await;
        let locks = node(&database).await;
        let guard = locks.acquire(1).await.unwrap();
        let pid = pid_of_holder(&database).await;
        (database, locks, guard, pid)
    });
    drop(first);
    run(async || {
        assert_eq!(guard.lost().cause(), Some(LossCause::OwnerGone));
        database.wait_until_no_advisory_locks(PATIENCE).await;
        let next = locks.acquire_within(1, PATIENCE).await.unwrap();
        assert_ne!(pid_of_holder(&database).await, pid);
        // the old guard's end takes nothing from the new one
        drop(guard);
        let again = locks.try_acquire(1).await.unwrap();
        assert!(again.is_none());
        assert_eq!(ids_held(&database).await, [1]);
        next.release().await.unwrap();
        assert_eq!(database.count_connections().await, 1);
    });
}

/// `inspect` names the holders by what the server knows of them.
#[test]
fn inspect_names_the_holders() {
    run(async || {
        let database = TestDatabase::create().await;
        let options = |name: &str| SessionOptions::new().application_name(name);
        let nightly = node_with(&database, options("nightly")).await;
        let hourly = node_with(&database, options("hourly")).await;
        let guard = nightly.acquire("report").await.unwrap();
        let pid = pid_of_holder(&database).await;
        let host = format!("select host(client_addr) from pg_stat_activity where pid = {pid}");
        let host: Option<String> = ask(&mut database.connect().await, &host).await;
        for locks in [&nightly, &hourly] {
            let holders = locks.inspect("report").await.unwrap();
            assert_eq!(holders.len(), 1, "{holders:?}");
            assert_eq!(holders[0].label.as_deref(), Some("nightly"));
            assert_eq!(holders[0].pid, Some(i64::from(pid)));
            assert_eq!(holders[0].mode, Mode::Exclusive);
            assert_eq!(holders[0].host, host);
        }
        assert_eq!(nightly.inspect("another").await.unwrap(), []);
        guard.release().await.unwrap();
        assert_eq!(hourly.inspect("report").await.unwrap(), []);

        let _one = nightly.lock((-1, 2)).shared().acquire().await.unwrap();
        let _two = hourly.lock((-1, 2)).shared().acquire().await.unwrap();
        let holders = hourly.inspect((-1, 2)).await.unwrap();
        let mut names: Vec<_> = holders.iter().filter_map(|h| h.label.as_deref()).collect();
        names.sort_unstable();
        assert_eq!(names, ["hourly", "nightly"]);
        assert!(holders.iter().all(|holder| holder.mode == Mode::Shared));
    });
}
