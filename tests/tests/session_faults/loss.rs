//! Sessions that the server ends.

use std::time::Duration;

use sqlock::{Error, LossCause};
use sqlock_tests::TestDatabase;
use tokio::time::{Instant, sleep};

use crate::support::{
    PATIENCE, ask, fast_enough, ids_held, node, pid_of_holder, run, until_waiting, within,
};

/// Case 29: the holder is told within 100 ms, and the next acquire is in a new session.
#[test]
fn the_holder_of_a_terminated_session_is_told_at_once() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut admin = database.server().connect().await;
        let locks = node(&database).await;
        fast_enough(Duration::from_millis(100), async || {
            let guard = locks.acquire(29).await.unwrap();
            let pid = pid_of_holder(&database).await;
            let lost = tokio::spawn(guard.lost().wait());
            // the owner rests: it is the idle socket that tells
            sleep(Duration::from_millis(50)).await;

            let started = Instant::now();
            assert!(ask::<bool>(&mut admin, &format!("select pg_terminate_backend({pid})")).await);
            let told = within(PATIENCE, "the loss", lost).await.unwrap();
            let time = started.elapsed();
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

            let next = locks.acquire_within(29, PATIENCE).await.unwrap();
            assert_ne!(pid_of_holder(&database).await, pid);
            next.release().await.unwrap();
            time
        })
        .await;
    });
}

/// Case 29, of its kind: a body that runs under the lock is stopped as soon.
#[test]
fn the_body_under_a_terminated_session_is_stopped() {
    run(async || {
        let database = TestDatabase::create().await;
        let locks = node(&database).await;
        let lock = locks.lock(29);
        let body = tokio::spawn(lock.with_lock(async |_| {
            std::future::pending::<()>().await;
            Ok::<_, Error>(())
        }));
        sqlock_tests::eventually(PATIENCE, async || ids_held(&database).await == [29]).await;
        database.terminate(pid_of_holder(&database).await).await;
        let stopped = within(Duration::from_secs(1), "the body's end", body).await;
        assert!(matches!(stopped.unwrap(), Err(Error::Lost { .. })));
    });
}

/// Case 30: a session never reconnects under locks that are held. What was held is lost for good,
/// free for others, and not in the next session.
#[test]
fn held_locks_do_not_move_to_the_next_session() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut other = database.connect().await;
        let locks = node(&database).await;
        let lost: [_; 3] = [
            locks.acquire(1).await.unwrap(),
            locks.lock(2).shared().acquire().await.unwrap(),
            locks.acquire_all([3, 4]).await.unwrap(),
        ];
        let pid = database.advisory_locks().await[0].pid;
        database.terminate(pid).await;
        for guard in &lost {
            within(PATIENCE, "the loss", guard.lost().wait()).await;
        }

        let next = locks.acquire_within(5, PATIENCE).await.unwrap();
        assert_eq!(ids_held(&database).await, [5]);
        for key in 1..5 {
            let take = format!("select pg_try_advisory_lock({key})");
            assert!(ask::<bool>(&mut other, &take).await, "{key}");
        }
        // the ends of the lost guards take nothing from those who have the keys now
        for guard in lost {
            assert!(matches!(guard.check(), Err(Error::Lost { .. })));
            assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
        }
        assert_eq!(ids_held(&database).await, [1, 2, 3, 4, 5]);
        next.release().await.unwrap();
    });
}

/// Those who wait outlive the session in which they waited, and what it held to wait is gone.
#[test]
fn waiters_go_on_in_a_new_session() {
    run(async || {
        let database = TestDatabase::create().await;
        let holder = node(&database).await;
        let held = holder.acquire(30).await.unwrap();
        let pid = pid_of_holder(&database).await;
        let locks = node(&database).await;
        let waiting = tokio::spawn(locks.lock(30).acquire());
        until_waiting(&database, 1).await;
        for _ in 0..3 {
            for backend in database.backends().await {
                if backend.pid != pid {
                    database.terminate(backend.pid).await;
                }
            }
            sleep(Duration::from_millis(100)).await;
            until_waiting(&database, 1).await;
        }
        assert!(!waiting.is_finished());
        held.release().await.unwrap();
        let guard = within(PATIENCE, "the waiter's turn", waiting).await;
        guard.unwrap().unwrap().release().await.unwrap();
        database.wait_until_no_advisory_locks(PATIENCE).await;
    });
}
