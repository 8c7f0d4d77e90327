//! The pool that locks and work share: used up, of one, closed, or of a server that is not there.

use std::time::Duration;

use sqlock::{Error, Locks, XactBackend, xact::XactOptions};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::{
    support::{PATIENCE, within},
    world::{World, both_ways, directly, insert, on, value, within_moments},
};

fn short_pool(world: &World, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_millis(500))
        .connect_lazy_with(world.options())
}

fn is_starved(error: &Error) -> bool {
    error.is_retryable() && format!("{error:?}").contains("make the pool larger")
}

/// Case 13: five holders on a pool of five. Whoever wants more is told why, in time, and whoever ends
/// is not held up.
#[test]
fn a_pool_that_is_used_up_is_a_bounded_wait_and_a_clear_error() {
    both_ways(async |world| {
        let locks = on(short_pool(&world, 5));
        let mut guards = Vec::new();
        for n in 0..5 {
            guards.push(locks.acquire(n).await.unwrap());
        }
        let started = Instant::now();
        let error = locks.try_acquire(5).await.unwrap_err();
        assert!(is_starved(&error), "{error:?}");
        assert!(started.elapsed() >= Duration::from_millis(450));
        let error = locks.acquire(5).await.unwrap_err();
        assert!(is_starved(&error), "{error:?}");
        // the budget is shorter than the pool's limit
        let started = Instant::now();
        let budget = Duration::from_millis(100);
        let error = locks.acquire_within(5, budget).await.unwrap_err();
        assert!(is_starved(&error), "{error:?}");
        assert!(started.elapsed() < Duration::from_millis(400));

        // the guard works, and ends, on what it has
        let mut guard = guards.pop().unwrap();
        insert(&mut guard, 1).await;
        guard.commit().await.unwrap();
        locks.acquire(5).await.unwrap().release().await.unwrap();
        drop(guards);
        world.is_clean().await;
    });
}

/// The application uses the pool up, and not the locks.
#[test]
fn a_pool_that_the_application_uses_up_is_told_too() {
    both_ways(async |world| {
        let pool = short_pool(&world, 2);
        let locks = on(pool.clone());
        let busy = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
        for _ in 0..3 {
            let error = locks.try_acquire(1).await.unwrap_err();
            assert!(is_starved(&error), "{error:?}");
            let budget = Duration::from_millis(50);
            let error = locks.acquire_within(1, budget).await.unwrap_err();
            assert!(is_starved(&error), "{error:?}");
        }
        drop(busy);
        locks.acquire(1).await.unwrap().release().await.unwrap();
        world.is_clean().await;
    });
}

#[test]
fn a_pool_of_one_is_never_stuck() {
    both_ways(async |world| {
        let pool = world.pool(1);
        let locks = on(pool.clone());
        for round in 0..30_u64 {
            let mut guard = locks.acquire(1).await.unwrap();
            match round % 4 {
                0 => drop(guard),
                1 => guard.commit().await.unwrap(),
                2 => guard.roll_back().await.unwrap(),
                _ => {
                    value::<i32>(guard.connection(), "select 1").await;
                    drop(within_moments(5 * round, guard.release()).await);
                }
            }
            let acquire = locks.try_acquire(1);
            drop(within_moments(50 * round, acquire).await);
            let one: i32 = value(&mut pool.acquire().await.unwrap(), "select 1").await;
            assert_eq!(one, 1);
        }
        world.is_clean().await;
    });
}

/// Those who wait in the queue, and are dropped there, take nothing along.
#[test]
fn cancelled_in_the_queue_for_a_connection() {
    both_ways(async |world| {
        let locks = on(world.pool(2));
        let holders = (
            locks.acquire("a").await.unwrap(),
            locks.acquire("b").await.unwrap(),
        );
        let mut tasks = JoinSet::new();
        for n in 0..200_u64 {
            let locks = locks.clone();
            tasks.spawn(async move {
                let acquire = locks.try_acquire(format!("k{n}"));
                assert!(timeout(Duration::from_millis(n), acquire).await.is_err());
            });
        }
        within(PATIENCE, "the cancelled", tasks.join_all()).await;
        drop(holders);
        let started = Instant::now();
        locks.acquire("c").await.unwrap().release().await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(1));
        world.is_clean().await;
    });
}

/// Many wait with few connections: nobody keeps one while it waits.
#[test]
fn waiters_keep_no_connection() {
    both_ways(async |world| {
        let pool = world.pool(3);
        let locks = on(pool.clone());
        let guard = locks.acquire("k").await.unwrap();
        let mut waiters = JoinSet::new();
        for _ in 0..20 {
            let waiting = locks.lock("k").within(PATIENCE);
            waiters.spawn(async move { waiting.await?.release().await });
        }
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let mut connection = pool.acquire().await.unwrap();
            assert_eq!(value::<i32>(&mut connection, "select 1").await, 1);
        }
        let other = locks.try_acquire("another").await.unwrap();
        other.unwrap().release().await.unwrap();
        guard.release().await.unwrap();
        for served in waiters.join_all().await {
            served.unwrap();
        }
        world.is_clean().await;
    });
}

#[test]
fn a_pool_that_was_closed_is_told() {
    directly(async |world| {
        let pool = world.pool(2);
        let locks = on(pool.clone());
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        // it waits for the guard's connection
        let closing = tokio::spawn({
            let pool = pool.clone();
            async move { pool.close().await }
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        let error = locks.try_acquire("other").await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        guard.commit().await.unwrap();
        within(PATIENCE, "the pool's end", closing).await.unwrap();
        world.has_work(&[1]).await;
        world.is_clean().await;
    });
}

/// A server that is not there is no pool that is too small.
#[test]
fn a_server_that_is_not_there_is_told() {
    directly(async |world| {
        let nowhere = world.options().port(1);
        let pool = PgPoolOptions::new()
            .acquire_timeout(Duration::from_millis(300))
            .connect_lazy_with(nowhere);
        let locks = Locks::new(XactBackend::new(pool));
        for wait in [
            None,
            Some(Duration::from_secs(5)),
            Some(Duration::from_millis(50)),
        ] {
            let error = match wait {
                None => locks.try_acquire("k").await.unwrap_err(),
                Some(wait) => locks.acquire_within("k", wait).await.unwrap_err(),
            };
            assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
            assert!(!is_starved(&error), "{error:?}");
        }
    });
}

/// The look before the first lock refuses a password that is wrong as it is, not as a timeout.
#[test]
fn a_database_that_is_not_there_is_told() {
    both_ways(async |world| {
        let options = world.options().database("no_such_database");
        let pool = PgPoolOptions::new().connect_lazy_with(options);
        for preflight in [
            sqlock::xact::Preflight::Check,
            sqlock::xact::Preflight::Skip,
        ] {
            let options = XactOptions::new().preflight(preflight);
            let locks = Locks::new(options.with_pool(pool.clone()));
            let error = locks.acquire_within("k", PATIENCE).await.unwrap_err();
            assert!(!is_starved(&error), "{error:?}");
        }
    });
}
