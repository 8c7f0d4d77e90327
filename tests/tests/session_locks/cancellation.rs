//! Callers that go away in the middle.

use std::{future::Future, pin::pin, task::Poll, time::Duration};

use sqlock_tests::TestDatabase;
use tokio::time::{sleep, timeout};

use crate::support::{PATIENCE, execute, ids_held, node, run};

/// Case 14: dropped between the send and the reply, a request leaves nothing held.
#[test]
fn a_future_dropped_between_send_and_reply_leaks_nothing() {
    const TRIALS: i64 = 400;
    run(async || {
        let database = TestDatabase::create().await;
        let locks = node(&database).await;
        let mut dropped = 0;
        for key in 0..TRIALS {
            let mut acquire = Box::pin(locks.try_acquire(key));
            if poll_once(acquire.as_mut()).await.is_none() {
                // the statement is sent, under way, or answered: a round trip takes some 100 µs
                let pause = Duration::from_micros(u64::try_from(key).unwrap() % 40 * 10);
                let _ = timeout(pause, std::future::pending::<()>()).await;
                dropped += 1;
            }
            drop(acquire);
        }
        assert!(dropped > TRIALS / 2, "{dropped} were dropped in the middle");
        database.wait_until_no_advisory_locks(PATIENCE).await;
        for key in 0..TRIALS {
            let guard = locks.try_acquire(key).await.unwrap();
            guard.expect("nobody holds it").release().await.unwrap();
        }
    });
}

/// Case 14, for those who wait: none of them takes the lock later.
#[test]
fn a_waiter_that_is_dropped_leaks_nothing() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut other = database.connect().await;
        let locks = node(&database).await;
        for round in 0..40 {
            execute(&mut other, "select pg_advisory_lock(14)").await;
            let waiters: Vec<_> = (0..5)
                .map(|_| {
                    let lock = locks.lock(14);
                    tokio::spawn(async move { lock.await.map(drop) })
                })
                .collect();
            sleep(Duration::from_millis(round % 8)).await;
            if round % 2 == 0 {
                execute(&mut other, "select pg_advisory_unlock(14)").await;
            }
            for waiter in &waiters {
                waiter.abort();
            }
            execute(&mut other, "select pg_advisory_unlock_all()").await;
            database.wait_until_no_advisory_locks(PATIENCE).await;
        }
    });
}

/// Case 17: a release whose caller is gone, or never waited for it, happens all the same.
#[test]
fn a_release_does_not_need_its_caller() {
    run(async || {
        let database = TestDatabase::create().await;
        let locks = node(&database).await;

        let guard = locks.acquire(17).await.unwrap();
        assert_eq!(ids_held(&database).await, [17]);
        // a caller whose time was up before
        let _ = timeout(Duration::ZERO, guard.release()).await;
        database.wait_until_no_advisory_locks(PATIENCE).await;

        // one that goes after the first poll; the answer may have come by then
        let guard = locks.acquire(17).await.unwrap();
        let _ = poll_once(pin!(guard.release())).await;
        database.wait_until_no_advisory_locks(PATIENCE).await;

        let guard = locks.acquire(17).await.unwrap();
        drop(guard.release());
        database.wait_until_no_advisory_locks(PATIENCE).await;

        // a task that is aborted while its body runs, and releases nothing by hand
        let lock = locks.lock(17);
        let body = tokio::spawn(lock.with_lock(async |_| {
            std::future::pending::<()>().await;
            Ok::<_, sqlock::Error>(())
        }));
        sqlock_tests::eventually(PATIENCE, async || ids_held(&database).await == [17]).await;
        body.abort();
        database.wait_until_no_advisory_locks(PATIENCE).await;
    });
}

async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}
