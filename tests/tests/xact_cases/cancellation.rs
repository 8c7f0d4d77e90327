//! Futures that are dropped: acquires, ends, and what the application does in the transaction.

use std::{mem, time::Duration};

use sqlock::{Error, LossCause};
use sqlx::Connection as _;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    support::{PATIENCE, execute, within},
    world::{both_ways, insert, on, value, within_moments},
};

/// Cases 14 and 15, at every moment: no lock, and no connection within a transaction.
#[test]
fn three_hundred_cancelled_acquires_leave_nothing() {
    both_ways(async |world| {
        let pool = world.pool(4);
        let locks = on(pool.clone());
        for round in 0..300_u64 {
            let acquire = locks.try_acquire(format!("k{round}"));
            drop(within_moments(round * 8, acquire).await);
        }
        world.is_clean().await;
        // the pool has all of its connections
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(
                within(PATIENCE, "a connection", pool.acquire())
                    .await
                    .unwrap(),
            );
        }
        for connection in &mut all {
            // not within a transaction, by sqlx's own count neither
            let transaction = connection.begin().await.unwrap();
            transaction.rollback().await.unwrap();
        }
    });
}

/// The same in parallel, over one key that is held now and then, by those who wait too.
#[test]
fn cancelled_waiters_leave_nothing() {
    both_ways(async |world| {
        let locks = on(world.pool(5));
        let mut tasks = JoinSet::new();
        for n in 0..100_u64 {
            let locks = locks.clone();
            tasks.spawn(async move {
                for round in 0..3 {
                    let limit = Duration::from_micros((n * 137 + round * 911) % 40_000);
                    let acquire = locks.acquire("k");
                    if let Ok(Ok(guard)) = timeout(limit, acquire).await {
                        drop(timeout(limit / 10, guard.release()).await);
                    }
                }
            });
        }
        within(PATIENCE, "the waiters", tasks.join_all()).await;
        world.is_clean().await;
        locks.acquire("k").await.unwrap().release().await.unwrap();
    });
}

/// Case 17: an end that is dropped midway ends the lock all the same; what was committed is so in
/// whole, or not at all.
#[test]
fn cancelled_ends_end() {
    both_ways(async |world| {
        let locks = world.locks();
        for n in 0..90 {
            let mut guard = locks.acquire("k").await.unwrap();
            let both = format!("insert into work values ({}), ({})", 2 * n, 2 * n + 1);
            execute(guard.connection(), &both).await;
            let limit = u64::try_from(n).unwrap() * 8;
            match n % 3 {
                0 => drop(within_moments(limit, guard.release()).await),
                1 => drop(within_moments(limit, guard.roll_back()).await),
                _ => drop(within_moments(limit, guard.held_mut().probe()).await),
            }
        }
        world.is_clean().await;
        let mut connection = world.database.connect().await;
        let halves =
            "select count(*) from (select n / 2 from work group by 1 having count(*) = 1) h";
        assert_eq!(value::<i64>(&mut connection, halves).await, 0);
        let rolled_back = "select count(*) from work where n / 2 % 3 <> 0";
        assert_eq!(value::<i64>(&mut connection, rolled_back).await, 0);
    });
}

/// The application's own statement, dropped midway: the guard is of use when the server is done.
#[test]
fn a_cancelled_statement_of_the_application() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        let slow = sqlx::raw_sql("select pg_sleep(0.3)").execute(guard.connection());
        assert!(timeout(Duration::from_millis(50), slow).await.is_err());
        guard.held_mut().probe().await.unwrap();
        guard.commit().await.unwrap();
        world.has_work(&[1]).await;

        // dropped right then, it is held until the server is done
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 2).await;
        let slow = sqlx::raw_sql("select pg_sleep(0.5)").execute(guard.connection());
        assert!(timeout(Duration::from_millis(50), slow).await.is_err());
        let started = Instant::now();
        drop(guard);
        assert!(
            started.elapsed() < Duration::from_millis(50),
            "a drop does not wait"
        );
        assert!(locks.try_acquire("k").await.unwrap().is_none());
        world.is_clean().await;
        world.has_work(&[1]).await;
    });
}

/// sqlx rolls the outer transaction back where the begin of a nested one is dropped midway. That is a
/// loss, and the commit says so.
#[test]
fn a_cancelled_begin_of_a_nested_transaction() {
    both_ways(async |world| {
        let locks = world.locks();
        let (mut committed, mut lost) = (Vec::new(), 0);
        for n in 0..90 {
            let mut guard = locks.acquire("k").await.unwrap();
            insert(&mut guard, n).await;
            let limit = u64::try_from(n).unwrap() * 3;
            let begun = within_moments(limit, guard.connection().begin()).await;
            drop(begun);
            match guard.commit().await {
                Ok(()) => committed.push(n),
                Err(Error::Lost { cause, .. }) => {
                    assert_eq!(cause, LossCause::TransactionEnded);
                    lost += 1;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(lost > 0 && !committed.is_empty(), "{lost} were lost");
        world.has_work(&committed).await;
        world.is_clean().await;
    });
}

/// A nested transaction that is leaked: sqlx would go back to its savepoint only, and the pool would
/// get a connection with the lock.
#[test]
fn a_leaked_nested_transaction_does_not_keep_the_lock() {
    both_ways(async |world| {
        let pool = world.pool(1);
        let locks = on(pool.clone());
        for (n, end) in ["drop", "roll back", "commit"].into_iter().enumerate() {
            let n = i32::try_from(n).unwrap();
            let mut guard = locks.acquire("k").await.unwrap();
            let mut inner = guard.connection().begin().await.unwrap();
            execute(&mut inner, &format!("insert into work values ({n})")).await;
            mem::forget(inner);
            match end {
                "drop" => drop(guard),
                "roll back" => guard.roll_back().await.unwrap(),
                _ => guard.commit().await.unwrap(),
            }
            world.is_clean().await;
            let mut connection = pool.acquire().await.unwrap();
            let transaction = connection.begin().await.unwrap();
            transaction.commit().await.unwrap();
        }
        world.has_work(&[2]).await;
    });
}

/// Case 16: a time limit that meets the grant; who is told that time ran out holds nothing.
#[test]
fn a_time_limit_that_meets_the_grant() {
    both_ways(async |world| {
        let (one, other) = (world.locks(), world.locks());
        for round in 0..40_u64 {
            let guard = one.acquire("k").await.unwrap();
            let (waited, ()) = tokio::join!(
                other.acquire_within("k", Duration::from_micros(10_000 + round * 100)),
                async {
                    sleep(Duration::from_millis(10)).await;
                    guard.release().await.unwrap();
                }
            );
            match waited {
                Ok(guard) => guard.release().await.unwrap(),
                // or no connection in time, on a machine that is busy
                Err(error) => assert!(error.is_retryable(), "{error:?}"),
            }
            world.is_clean().await;
        }
    });
}
