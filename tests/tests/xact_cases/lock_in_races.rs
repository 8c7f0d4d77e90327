//! Time limits that meet grants, and futures that are dropped, in a transaction of the application's
//! own.

use std::time::Duration;

use sqlock::{
    Error,
    xact::{lock_all_in, lock_in, try_lock_all_in, try_lock_in},
};
use sqlx::{Postgres, Transaction};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    support::{PATIENCE, execute},
    world::{World, both_ways, on, process, value, within_moments},
};

/// What the transaction holds, by the server's word.
async fn holds(transaction: &mut Transaction<'static, Postgres>) -> i64 {
    let count = "select count(*) from pg_locks where locktype = 'advisory' and granted \
                 and pid = pg_backend_pid()";
    value(transaction, count).await
}

/// Case 16: `Ok` means held, and a timeout that it is not, however close the grant comes.
#[test]
fn a_time_limit_that_meets_the_grant() {
    both_ways(async |world| {
        let (pool, locks) = (world.pool(2), world.locks());
        let (mut granted, mut refused) = (0, 0);
        for round in 0..80_u64 {
            let guard = locks.acquire_all([1, 2]).await.unwrap();
            let mut transaction = pool.begin().await.unwrap();
            let (waited, ()) = tokio::join!(
                lock_all_in(&mut transaction, [1, 2, 3], Duration::from_millis(10)),
                async {
                    sleep(Duration::from_micros(6_000 + round * 70)).await;
                    guard.release().await.unwrap();
                }
            );
            match waited {
                Ok(()) => {
                    granted += 1;
                    assert_eq!(holds(&mut transaction).await, 3);
                }
                Err(Error::Timeout { .. }) => {
                    refused += 1;
                    assert_eq!(holds(&mut transaction).await, 0);
                }
                Err(error) => panic!("{error:?}"),
            }
            transaction.commit().await.unwrap();
        }
        eprintln!("{granted} granted, {refused} refused");
        world.is_clean().await;
    });
}

/// Dropped at every moment: what is held then is not known, and goes with the transaction.
#[test]
fn dropped_at_every_moment() {
    both_ways(async |world| {
        let pool = world.pool(2);
        let holder = world.locks().acquire_all([5, 6]).await.unwrap();
        for round in 0..160_u64 {
            let mut transaction = pool.begin().await.unwrap();
            let limit = round / 4 * 16;
            let brief = Duration::from_millis(2);
            match round % 4 {
                0 => drop(within_moments(limit, try_lock_in(&mut transaction, 1)).await),
                1 => drop(within_moments(limit, try_lock_all_in(&mut transaction, [1, 5])).await),
                2 => drop(within_moments(limit, lock_in(&mut transaction, 5, brief)).await),
                _ => drop(
                    within_moments(limit, lock_all_in(&mut transaction, [1, 5, 6], brief)).await,
                ),
            }
            if round % 2 == 0 {
                // it may give the error of the statement that was under way
                transaction.rollback().await.ok();
            } else {
                drop(transaction);
            }
        }
        drop(holder);
        world.is_clean().await;
        let mut connection = pool.acquire().await.unwrap();
        let limit: String = value(&mut connection, "select current_setting('lock_timeout')").await;
        assert_eq!(limit, "0");
    });
}

/// The server goes on waiting for a caller that has gone away, within the budget; the roll-back comes
/// after that.
#[test]
fn a_dropped_wait_ends_with_its_budget() {
    both_ways(async |world| {
        let pool = world.pool(1);
        let holder = world.locks().acquire(1).await.unwrap();
        let mut transaction = pool.begin().await.unwrap();
        execute(&mut transaction, "insert into work values (1)").await;
        let budget = Duration::from_millis(600);
        let waiting = lock_in(&mut transaction, 1, budget);
        assert!(timeout(Duration::from_millis(100), waiting).await.is_err());
        let started = Instant::now();
        transaction.rollback().await.ok();
        assert!(started.elapsed() < PATIENCE / 2);
        drop(holder);
        world.is_clean().await;
        world.has_work(&[]).await;
    });
}

/// A guard's transaction is dropped while it waits for another lock in it.
#[test]
fn a_guard_that_is_dropped_while_it_waits() {
    both_ways(async |world: World| {
        let locks = on(world.pool(3));
        let holder = locks.acquire(1).await.unwrap();
        let mut guard = locks.acquire(2).await.unwrap();
        let pid = process(guard.connection()).await;
        let waiting = lock_in(guard.connection(), 1, Duration::from_millis(300));
        assert!(timeout(Duration::from_millis(50), waiting).await.is_err());
        drop(guard);
        let again = locks.acquire_within(2, PATIENCE).await.unwrap();
        assert_ne!(pid, 0);
        drop((again, holder));
        world.is_clean().await;
    });
}
