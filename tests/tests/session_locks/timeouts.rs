//! Time that runs out, and statements that fail: whatever the caller is told is true.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use sqlock::Error;
use sqlock_tests::TestDatabase;
use tokio::{task::JoinSet, time::sleep};

use crate::support::{
    PATIENCE, SessionOptions, ask, execute, ids_held, join_all, keys_held, node, node_with, run,
    until_waiting,
};

/// Case 16: a timeout is not reported for a lock that is held. Budgets around the moment of the
/// grant.
#[test]
fn after_a_timeout_nothing_is_held() {
    run(async || {
        let database = TestDatabase::create().await;
        let holder = node(&database).await;
        let locks = node(&database).await;
        let (mut granted, mut timed_out) = (0, 0);
        for round in 0..60 {
            let held = holder.acquire(16).await.unwrap();
            let release = async {
                sleep(Duration::from_millis(10)).await;
                held.release().await.unwrap();
            };
            // most of them end when the lock is just being handed over
            let budget = match round % 6 {
                0 => Duration::from_millis(1),
                1 => Duration::from_millis(500),
                _ => Duration::from_micros(10_000 + 50 * round),
            };
            let (answer, ()) = tokio::join!(locks.acquire_within(16, budget), release);
            match answer {
                Ok(guard) => {
                    granted += 1;
                    assert_eq!(ids_held(&database).await, [16]);
                    guard.release().await.unwrap();
                }
                Err(Error::Timeout { .. }) => timed_out += 1,
                Err(other) => panic!("{other:?}"),
            }
            database.wait_until_no_advisory_locks(PATIENCE).await;
        }
        assert!(granted >= 5 && timed_out >= 5, "{granted}, {timed_out}");
    });
}

/// Case 16, of any error: an administrator cancels our statements, which have some of their locks
/// by then and others not.
#[test]
fn after_a_cancelled_statement_nothing_is_held_that_nobody_knows_of() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut admin = database.server().connect().await;
        let locks = node(&database).await;
        let over = Arc::new(AtomicBool::new(false));
        let inside = Arc::new(AtomicI64::new(0));
        let mut tasks = JoinSet::new();
        for task in 1..5 {
            let (locks, over, inside) = (locks.clone(), Arc::clone(&over), Arc::clone(&inside));
            // one key that all of them want, and enough others to make a statement long
            let keys: Vec<_> = [16]
                .into_iter()
                .chain(task * 1000..task * 1000 + 300)
                .collect();
            tasks.spawn(async move {
                let mut failed = 0;
                while !over.load(Ordering::Relaxed) {
                    let Ok(guard) = locks.acquire_all(keys.iter().copied()).await else {
                        failed += 1;
                        continue;
                    };
                    let others = inside.fetch_add(1, Ordering::SeqCst);
                    sleep(Duration::from_micros(200)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    // a lock that was lost does not keep others out
                    assert!(others == 0 || guard.check().is_err());
                }
                failed
            });
        }
        let cancel = format!(
            "select count(pg_cancel_backend(pid)) from pg_stat_activity where datname = '{}'",
            database.name()
        );
        for _ in 0..500 {
            ask::<i64>(&mut admin, &cancel).await;
            sleep(Duration::from_millis(1)).await;
        }
        over.store(true, Ordering::Relaxed);
        let failed: i32 = join_all(tasks).await.into_iter().sum();
        assert!(
            failed > 0,
            "no statement was cancelled: the test says nothing"
        );

        database.wait_until_no_advisory_locks(PATIENCE).await;
        locks.acquire(16).await.unwrap().release().await.unwrap();
    });
}

/// Case 18: a waiter whose time is up does not go on waiting in the server.
#[test]
fn a_timed_out_waiter_never_takes_the_lock() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut other = database.connect().await;
        let often = SessionOptions::new().poll_interval(Duration::from_millis(20));
        let locks = node_with(&database, often).await;

        execute(&mut other, "select pg_advisory_lock(18)").await;
        let waiting = locks.acquire_within(18, Duration::from_millis(150));
        let watching = async {
            until_waiting(&database, 1).await;
            let blocked = database.advisory_locks().await;
            assert!(blocked.iter().all(|lock| lock.granted), "{blocked:?}");
        };
        let (answer, ()) = tokio::join!(waiting, watching);
        assert!(matches!(answer, Err(Error::Timeout { .. })));

        // nothing is left of the wait but the holder itself
        sqlock_tests::eventually(PATIENCE, async || {
            database.advisory_locks().await == keys_held(&database).await
        })
        .await;
        execute(
            &mut other,
            "select pg_advisory_unlock(18), pg_notify('sqlock', '18')",
        )
        .await;
        for _ in 0..20 {
            assert_eq!(database.advisory_locks().await, []);
            sleep(Duration::from_millis(10)).await;
        }
    });
}

/// What was counted against the budget is given back, whatever became of the requests.
#[test]
fn the_budget_does_not_leak() {
    run(async || {
        let database = TestDatabase::create().await;
        let other = node(&database).await;
        let few = SessionOptions::new().lock_budget(8);
        let locks = node_with(&database, few).await;
        for round in 0..100_u64 {
            let held = other.acquire(1).await.unwrap();
            let answer = match round % 4 {
                0 => locks.try_acquire(1).await.map(drop),
                1 => {
                    let budget = Duration::from_millis(round % 10);
                    locks.acquire_within(1, budget).await.map(drop)
                }
                2 => locks.lock_all([1, 2, 3]).try_acquire().await.map(drop),
                _ => {
                    let lock = locks.lock_all([1, 2, 3]).within(Duration::from_millis(3));
                    lock.acquire().await.map(drop)
                }
            };
            assert!(
                matches!(answer, Ok(()) | Err(Error::Timeout { .. })),
                "{answer:?}"
            );
            drop(held);
        }
        database.wait_until_no_advisory_locks(PATIENCE).await;
        let mut guards = Vec::new();
        for key in 0..8 {
            guards.push(locks.acquire(key).await.unwrap());
        }
        let mut server = database.connect().await;
        let held = "select count(*) from pg_locks where locktype = 'advisory' \
                    and database = (select oid from pg_database where datname = current_database())";
        assert_eq!(ask::<i64>(&mut server, held).await, 8);
        let refused = locks.try_acquire(8).await;
        assert!(
            matches!(
                refused,
                Err(Error::LockBudget {
                    in_use: 8,
                    budget: 8,
                    ..
                })
            ),
            "{refused:?}"
        );
    });
}
