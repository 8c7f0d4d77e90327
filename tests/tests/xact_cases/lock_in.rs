//! Locks in a transaction of the application's own.

use std::time::Duration;

use sqlock::{
    Error, InvalidKey, LockKey, Locks, LossCause, XactBackend,
    xact::{
        LockIn, lock_all_in, lock_all_shared_in, lock_in, lock_shared_in, try_lock_all_in,
        try_lock_all_shared_in, try_lock_in, try_lock_shared_in,
    },
};
use sqlx::{Connection as _, PgConnection};
use tokio::time::{Instant, sleep};

use crate::{
    support::{PATIENCE, execute},
    world::{World, both_ways, directly, fails, insert, value},
};

const BRIEF: Duration = Duration::from_millis(50);

async fn held(world: &World) -> Vec<i64> {
    let locks = world.database.advisory_locks().await;
    let granted = locks.iter().filter(|lock| lock.granted);
    granted.filter_map(sqlock_tests::AdvisoryLock::id).collect()
}

#[test]
fn it_is_held_until_the_transaction_ends() {
    both_ways(async |world| {
        let (pool, locks) = (world.pool(3), world.locks());
        let mut one = pool.begin().await.unwrap();
        let mut other = pool.begin().await.unwrap();
        assert!(try_lock_in(&mut one, 7).await.unwrap());
        // a transaction takes its own lock again
        assert!(try_lock_in(&mut one, 7).await.unwrap());
        lock_in(&mut one, 7, BRIEF).await.unwrap();
        assert_eq!(held(&world).await, [7]);
        assert!(!try_lock_in(&mut other, 7).await.unwrap());
        assert!(locks.try_acquire(7).await.unwrap().is_none());
        execute(&mut one, "insert into work values (1)").await;
        one.commit().await.unwrap();
        assert!(held(&world).await.is_empty());

        lock_in(&mut other, 7, BRIEF).await.unwrap();
        execute(&mut other, "insert into work values (2)").await;
        other.rollback().await.unwrap();
        locks
            .try_acquire(7)
            .await
            .unwrap()
            .expect("it is free")
            .release()
            .await
            .unwrap();
        world.has_work(&[1]).await;
        world.is_clean().await;
    });
}

/// By whatever the application has at hand: a transaction, its connection, or one of its own SQL.
#[test]
fn whatever_the_transaction_is() {
    both_ways(async |world| {
        let pool = world.pool(3);
        let mut transaction = pool.begin().await.unwrap();
        assert!(try_lock_in(&mut transaction, "a").await.unwrap());
        let connection: &mut PgConnection = &mut transaction;
        assert!(try_lock_in(connection, "b").await.unwrap());
        let mut nested = transaction.begin().await.unwrap();
        assert!(try_lock_in(&mut nested, "c").await.unwrap());
        nested.commit().await.unwrap();
        assert_eq!(held(&world).await.len(), 3);
        transaction.commit().await.unwrap();

        let mut connection = world.connect().await;
        execute(&mut connection, "begin").await;
        assert!(try_lock_in(&mut connection, "a").await.unwrap());
        execute(&mut connection, "commit").await;

        // and in the transaction of a guard
        let mut guard = world.locks().acquire("d").await.unwrap();
        assert!(try_lock_in(guard.connection(), "a").await.unwrap());
        insert(&mut guard, 1).await;
        guard.commit().await.unwrap();
        world.is_clean().await;
    });
}

#[test]
fn shared_ones_stand_beside_each_other() {
    both_ways(async |world| {
        let pool = world.pool(3);
        let mut one = pool.begin().await.unwrap();
        let mut other = pool.begin().await.unwrap();
        assert!(try_lock_shared_in(&mut one, 1).await.unwrap());
        lock_shared_in(&mut other, 1, BRIEF).await.unwrap();
        assert!(try_lock_all_shared_in(&mut one, [2, 3]).await.unwrap());
        lock_all_shared_in(&mut other, [3, 2], BRIEF).await.unwrap();
        let mut writer = pool.begin().await.unwrap();
        assert!(!try_lock_in(&mut writer, 1).await.unwrap());
        assert!(!try_lock_all_in(&mut writer, [2, 4]).await.unwrap());
        let refused = lock_in(&mut writer, 3, BRIEF).await.unwrap_err();
        assert!(matches!(refused, Error::Timeout { .. }));
        one.rollback().await.unwrap();
        other.rollback().await.unwrap();
        lock_all_in(&mut writer, [1, 2, 3], BRIEF).await.unwrap();
        writer.rollback().await.unwrap();
        world.is_clean().await;
    });
}

/// Several keys: all or none, also where the last is the one that is refused.
#[test]
fn all_or_none() {
    both_ways(async |world| {
        let pool = world.pool(3);
        let keys = || {
            (1..=9)
                .map(LockKey::from_id)
                .chain([LockKey::from_pair(1, 2).unwrap()])
        };
        let mut one = pool.begin().await.unwrap();
        for taken in [1, 5, 9] {
            let mut other = pool.begin().await.unwrap();
            assert!(try_lock_in(&mut one, taken).await.unwrap());
            execute(&mut other, "insert into work values (1)").await;
            assert!(!try_lock_all_in(&mut other, keys()).await.unwrap());
            let started = Instant::now();
            let refused = lock_all_in(&mut other, keys(), BRIEF).await.unwrap_err();
            assert!(matches!(refused, Error::Timeout { .. }), "{refused:?}");
            assert!(started.elapsed() < BRIEF + PATIENCE / 10);
            assert_eq!(held(&world).await, [taken]);
            one.rollback().await.unwrap();
            one = pool.begin().await.unwrap();
            assert!(try_lock_all_in(&mut other, keys()).await.unwrap());
            assert_eq!(held(&world).await.len(), 9);
            other.rollback().await.unwrap();
        }
        drop(one);
        world.is_clean().await;
    });
}

/// Keys that are given twice, or none, or that cannot be.
#[test]
fn keys_are_checked_before_anything_is_sent() {
    both_ways(async |world| {
        let mut transaction = world.pool(1).begin().await.unwrap();
        assert!(
            try_lock_all_in(&mut transaction, [3, 3, 1, 3])
                .await
                .unwrap()
        );
        assert_eq!(held(&world).await, [1, 3]);
        for refused in [
            try_lock_in(&mut transaction, "").await.unwrap_err(),
            try_lock_in(&mut transaction, "a\0").await.unwrap_err(),
            try_lock_all_in(&mut transaction, Vec::<i64>::new())
                .await
                .unwrap_err(),
            lock_in(&mut transaction, "x".repeat(513), BRIEF)
                .await
                .unwrap_err(),
        ] {
            assert!(matches!(refused, Error::InvalidKey(_)), "{refused:?}");
        }
        assert_eq!(
            LockKey::new("").unwrap_err().to_string(),
            InvalidKey::Empty.to_string()
        );
        assert!(try_lock_in(&mut transaction, i64::MIN).await.unwrap());
        assert!(try_lock_in(&mut transaction, (-1, i32::MIN)).await.unwrap());
        transaction.commit().await.unwrap();
    });
}

/// Outside of a transaction a lock would be gone at once.
#[test]
fn outside_of_a_transaction_it_is_an_error() {
    both_ways(async |world| {
        let mut connection = world.connect().await;
        for _ in 0..3 {
            outside(&mut connection).await;
            // the connection is as it was
            assert_eq!(value::<i32>(&mut connection, "select 1").await, 1);
        }
        assert!(held(&world).await.is_empty());
        let mut transaction = connection.begin().await.unwrap();
        assert!(try_lock_in(&mut transaction, 1).await.unwrap());
        transaction.commit().await.unwrap();
        outside(&mut connection).await;
    });
}

async fn outside(connection: &mut PgConnection) {
    for refused in [
        try_lock_in(connection, 1).await.map(drop),
        lock_in(connection, 1, BRIEF).await,
        try_lock_all_in(connection, [1, 2]).await.map(drop),
        lock_all_in(connection, [1, 2], BRIEF).await,
    ] {
        assert!(matches!(refused, Err(Error::NoTransaction)), "{refused:?}");
    }
}

#[test]
fn in_a_transaction_that_has_failed_it_is_an_error() {
    both_ways(async |world| {
        let pool = world.pool(1);
        let mut transaction = pool.begin().await.unwrap();
        fails(&mut transaction, "select 1/0").await;
        for refused in [
            try_lock_in(&mut transaction, 1).await.map(drop),
            lock_all_in(&mut transaction, [1, 2], BRIEF).await,
        ] {
            assert!(matches!(refused, Err(Error::Aborted { .. })), "{refused:?}");
        }
        transaction.rollback().await.unwrap();
        world.is_clean().await;
    });
}

/// Case 37: what such a transaction sees is older than the lock. Refused, unless it is allowed.
#[test]
fn a_snapshot_that_precedes_the_lock() {
    both_ways(async |world| {
        let pool = world.pool(3);
        for level in ["repeatable read", "serializable"] {
            let mut transaction = pool.begin().await.unwrap();
            let set = format!("set transaction isolation level {level}");
            execute(&mut transaction, &set).await;
            for refused in [
                try_lock_in(&mut transaction, 1).await.map(drop),
                lock_in(&mut transaction, 1, BRIEF).await,
                try_lock_all_in(&mut transaction, [1, 2]).await.map(drop),
            ] {
                let Err(Error::StaleSnapshot { level: told }) = refused else {
                    panic!("{level}: {refused:?}");
                };
                assert_eq!(told, level);
            }
            assert!(held(&world).await.is_empty());
            // it goes on, and it is what it was
            let isolation = "select current_setting('transaction_isolation')";
            assert_eq!(value::<String>(&mut transaction, isolation).await, level);
            let any = LockIn::new().at_any_isolation();
            assert!(any.try_lock(&mut transaction, [1]).await.unwrap());
            any.lock(&mut transaction, [1, 2], BRIEF).await.unwrap();
            transaction.commit().await.unwrap();
        }
        // what is feared: the last holder's work is not seen
        let mut stale = pool.begin().await.unwrap();
        execute(
            &mut stale,
            "set transaction isolation level repeatable read",
        )
        .await;
        let count = "select count(*) from work";
        assert_eq!(value::<i64>(&mut stale, count).await, 0);
        let mut guard = world.locks().acquire(1).await.unwrap();
        insert(&mut guard, 1).await;
        guard.commit().await.unwrap();
        LockIn::new()
            .at_any_isolation()
            .lock(&mut stale, [1], BRIEF)
            .await
            .unwrap();
        assert_eq!(value::<i64>(&mut stale, count).await, 0);
        stale.rollback().await.unwrap();
        let mut fresh = pool.begin().await.unwrap();
        lock_in(&mut fresh, 1, BRIEF).await.unwrap();
        assert_eq!(value::<i64>(&mut fresh, count).await, 1);
        fresh.rollback().await.unwrap();
        world.is_clean().await;
    });
}

/// A waiter sees what the holder wrote that it waited for.
#[test]
fn a_waiter_is_served_when_the_holder_ends() {
    both_ways(async |world| {
        let (pool, locks) = (world.pool(3), world.locks());
        let mut guard = locks.acquire_all([1, 2, 3]).await.unwrap();
        insert(&mut guard, 1).await;
        let mut transaction = pool.begin().await.unwrap();
        let (waited, ()) =
            tokio::join!(lock_all_in(&mut transaction, [3, 2, 1], PATIENCE), async {
                sleep(BRIEF).await;
                guard.commit().await.unwrap();
            });
        waited.unwrap();
        let count = "select count(*) from work";
        assert_eq!(value::<i64>(&mut transaction, count).await, 1);
        assert_eq!(held(&world).await, [1, 2, 3]);
        transaction.commit().await.unwrap();
        world.is_clean().await;
    });
}

/// A connection that breaks under a waiter is told as that.
#[test]
fn a_connection_that_breaks() {
    both_ways(async |world| {
        let holder: Locks<XactBackend> = world.locks();
        let guard = holder.acquire(1).await.unwrap();
        let mut transaction = world.pool(1).begin().await.unwrap();
        let pid: i32 = value(&mut transaction, "select pg_backend_pid()").await;
        let (waited, ()) = tokio::join!(lock_in(&mut transaction, 1, PATIENCE), async {
            sleep(BRIEF).await;
            world.database.terminate(pid).await;
        });
        let error = waited.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        drop((transaction, guard));
        world.is_clean().await;
    });
}

/// A shadowed function or operator is not called.
#[test]
fn what_the_search_path_puts_first_is_not_called() {
    directly(async |world| {
        let mut connection = world.database.connect().await;
        let decoys = "create schema decoy; \
             create function decoy.pg_try_advisory_xact_lock(bigint) returns boolean \
             language sql as 'select true'; \
             create function decoy.set_config(text, text, boolean) returns text \
             language sql as 'select null::text'; \
             create function decoy.current_setting(text, boolean) returns text \
             language sql as 'select null::text'; \
             create function decoy.differ(text, text) returns boolean language sql as 'select true'; \
             create operator decoy.= (function = decoy.differ, leftarg = text, rightarg = text);";
        execute(&mut connection, decoys).await;
        let path = format!(
            "alter database {} set search_path = decoy, public, pg_catalog",
            world.database.name()
        );
        execute(&mut connection, &path).await;
        let guard = world.locks().acquire(1).await.unwrap();
        assert_eq!(held(&world).await, [1]);
        let mut transaction = world.pool(1).begin().await.unwrap();
        assert!(!try_lock_in(&mut transaction, 1).await.unwrap());
        let mut ended = world.locks().acquire(2).await.unwrap();
        execute(ended.connection(), "commit; begin").await;
        let error = ended.commit().await.unwrap_err();
        let cause = LossCause::TransactionEnded;
        assert!(matches!(&error, Error::Lost { cause: found, .. } if *found == cause));
        guard.commit().await.unwrap();
        transaction.rollback().await.unwrap();
        world.is_clean().await;
    });
}
