//! Servers that stop, crash and come back.

use std::time::Duration;

use sqlock::{Error, LossCause};
use sqlock_tests::{PostgresServer, Stop};
use tokio::time::Instant;

use crate::support::{
    PATIENCE, SessionOptions, ids_held, node, node_with, run, until_waiting, within,
};

#[test]
fn a_fast_stop_is_survived() {
    run(async || survive(async |server| server.stop(Stop::Fast).await).await);
}

#[test]
fn an_immediate_stop_is_survived() {
    run(async || survive(async |server| server.stop(Stop::Immediate).await).await);
}

#[test]
fn a_kill_9_of_every_process_is_survived() {
    run(async || survive(PostgresServer::kill).await);
}

/// The holder is told why; who tries while the server is down is told so; who waits is served when
/// it is back.
async fn survive(stop: impl AsyncFnOnce(&PostgresServer)) {
    let server = PostgresServer::start(&[]).await;
    let database = server.database().await;
    let (one, two) = (node(&database).await, node(&database).await);
    let held = one.acquire(1).await.unwrap();
    let here = tokio::spawn(one.lock(1).acquire());
    let elsewhere = tokio::spawn(two.lock(1).acquire());
    until_waiting(&database, 1).await;

    stop(&server).await;

    let told = within(Duration::from_secs(1), "the loss", held.lost().wait()).await;
    assert!(
        matches!(
            told,
            Error::Lost {
                cause: LossCause::ConnectionClosed,
                ..
            }
        ),
        "{told:?}"
    );
    for locks in [&one, &two] {
        let tried = within(PATIENCE, "a try", locks.try_acquire(2)).await;
        let error = tried.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert!(error.is_retryable());
    }
    let started = Instant::now();
    let budget = Duration::from_millis(300);
    let late = within(PATIENCE, "a budget's end", one.acquire_within(2, budget)).await;
    assert!(late.unwrap_err().is_retryable());
    assert!(started.elapsed() >= budget, "an outage may be over before");
    assert!(!here.is_finished() && !elsewhere.is_finished());

    server.start_again().await;

    let serve = async |waiting: tokio::task::JoinHandle<sqlock::Result<_>>| {
        let guard: crate::support::Guard = waiting.await.unwrap().unwrap();
        assert_eq!(ids_held(&database).await, [1]);
        guard.check().unwrap();
        guard.release().await.unwrap();
    };
    // the two of them in either order
    let served = async { tokio::join!(serve(here), serve(elsewhere)) };
    within(PATIENCE, "both turns", served).await;
    database.wait_until_no_advisory_locks(PATIENCE).await;
    assert!(held.check().is_err(), "a lock does not come back");
}

/// One backend's crash makes the server end all sessions and recover: within a second they are
/// told, and the next acquire succeeds.
#[test]
fn a_crash_of_another_backend_is_survived() {
    run(async || {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        let locks = node(&database).await;
        let held = locks.acquire(1).await.unwrap();
        let pid = crate::support::pid_of_holder(&database).await;
        let mut bystander = server.connect().await;
        let other: i32 = crate::support::ask(&mut bystander, "select pg_backend_pid()").await;
        assert_ne!(pid, other);
        server.kill_backend(other);
        within(Duration::from_secs(2), "the loss", held.lost().wait()).await;
        let next = locks.acquire_within(1, PATIENCE).await.unwrap();
        assert_eq!(ids_held(&database).await, [1]);
        next.release().await.unwrap();
    });
}

/// Who waits does so for the reconnect limit, and no longer.
#[test]
fn waiters_outlast_an_outage_for_so_long() {
    run(async || {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        let limit = Duration::from_millis(800);
        let options = SessionOptions::new().reconnect_limit(limit);
        let locks = node_with(&database, options).await;
        let _held = locks.acquire(1).await.unwrap();
        let waiting = tokio::spawn(locks.lock(1).acquire());
        server.stop(Stop::Immediate).await;
        let started = Instant::now();
        let told = within(PATIENCE, "the end of the wait", waiting).await;
        let error = told.unwrap().unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert!(started.elapsed() >= limit / 2);
    });
}
