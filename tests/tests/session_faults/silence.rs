//! Servers that say nothing any more, as one whose machine hangs.

use std::{future::Future, task::Poll, time::Duration};

use sqlock::{Error, LossCause};
use sqlock_tests::PostgresServer;
use tokio::time::{Instant, sleep};

use crate::support::{
    PATIENCE, SessionOptions, ids_held, node, node_with, pid_of_holder, run, within,
};

/// The holder is told within the heartbeat's interval and limit, and the next acquire succeeds
/// once the server goes on.
#[test]
fn silence_is_a_loss_after_the_heartbeats_limit() {
    run(async || {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        let (interval, limit) = (Duration::from_millis(200), Duration::from_millis(500));
        let options = SessionOptions::new()
            .heartbeat(interval, limit)
            .connect_timeout(Duration::from_secs(1));
        let locks = node_with(&database, options).await;
        let guard = locks.acquire(1).await.unwrap();
        // a pause within the limit is none
        server.pause();
        sleep(limit / 5).await;
        server.resume();
        sleep(interval * 2).await;
        guard.check().unwrap();

        server.pause();
        let started = Instant::now();
        let told = within(PATIENCE, "the loss", guard.lost().wait()).await;
        let time = started.elapsed();
        assert!(
            matches!(
                told,
                Error::Lost {
                    cause: LossCause::Unresponsive,
                    ..
                }
            ),
            "{told:?}"
        );
        let slack = Duration::from_millis(300);
        assert!(time <= interval + limit + slack, "{time:?}");

        let tried = within(PATIENCE, "a try", locks.try_acquire(1)).await;
        assert!(matches!(tried, Err(Error::Unavailable { .. })), "{tried:?}");
        server.resume();
        let next = within(PATIENCE, "the next", locks.acquire(1))
            .await
            .unwrap();
        assert_eq!(ids_held(&database).await, [1]);
        next.release().await.unwrap();
        // what the old session held went with it
        database.wait_until_no_advisory_locks(PATIENCE).await;
    });
}

/// Case 14, without chance: requests whose callers go away while the server has them, and has not
/// answered.
#[test]
fn requests_that_are_dropped_in_the_server_leak_nothing() {
    run(async || {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        let locks = node(&database).await;
        let first = locks.acquire(0).await.unwrap();
        let pid = pid_of_holder(&database).await;
        for round in 0..5 {
            server.pause_backend(pid);
            let mut requests: Vec<_> = (1..21).map(|key| Box::pin(locks.acquire(key))).collect();
            let mut tries: Vec<_> = (21..41)
                .map(|key| Box::pin(locks.try_acquire(key)))
                .collect();
            for _ in 0..2 {
                for request in &mut requests {
                    assert!(poll_once(request).await.is_pending());
                }
                for request in &mut tries {
                    assert!(poll_once(request).await.is_pending());
                }
                sleep(Duration::from_millis(20)).await;
            }
            drop((requests, tries));
            server.resume_backend(pid);
            sqlock_tests::eventually(PATIENCE, async || {
                // granted and given back, with that of the first to show that the session lives
                ids_held(&database).await == [0] && database.advisory_locks().await.len() == 1
            })
            .await;
            let next = locks.acquire_within(1 + round, PATIENCE).await.unwrap();
            next.release().await.unwrap();
        }
        assert_eq!(pid_of_holder(&database).await, pid);
        first.release().await.unwrap();
    });
}

async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *future).poll(context)))
        .await
}
