//! Others who lock the same numbers: sqlx's own lock, and plain SQL.

use std::time::Duration;

use sqlock::{IntoLockKey, Mode};
use sqlock_tests::TestDatabase;
use sqlx::{
    Either, PgConnection,
    postgres::{PgAdvisoryLock, PgAdvisoryLockKey},
};

use crate::support::{
    Guard, PATIENCE, SessionLocks, SessionOptions, Times, ask, execute, node, node_with, run,
    until_waiting, within,
};

/// `PgAdvisoryLock` on the same number or pair excludes ours, and ours excludes it.
#[test]
fn the_lock_of_sqlx_is_the_same_lock() {
    run(async || {
        let database = TestDatabase::create().await;
        let locks = node(&database).await;
        let key = PgAdvisoryLockKey::BigInt(-42);
        exclude_each_other(&database, &locks, key, -42).await;
        let key = PgAdvisoryLockKey::IntPair(-7, 42);
        exclude_each_other(&database, &locks, key, (-7, 42)).await;
        let named = PgAdvisoryLock::new("daily-report");
        let id = named.key().as_bigint().unwrap();
        exclude_each_other(&database, &locks, named.key().clone(), id).await;
    });
}

async fn exclude_each_other(
    database: &TestDatabase,
    locks: &SessionLocks,
    theirs: PgAdvisoryLockKey,
    ours: impl IntoLockKey + Clone,
) {
    let theirs = PgAdvisoryLock::with_key(theirs);
    for mode in [Mode::Exclusive, Mode::Shared] {
        let guard = take(locks, ours.clone(), mode).await.unwrap();
        let free = match theirs.try_acquire(database.connect().await).await.unwrap() {
            Either::Left(_) => panic!("{theirs:?} was granted beside ours, {mode:?}"),
            Either::Right(connection) => connection,
        };
        guard.release().await.unwrap();

        let held = theirs.acquire(free).await.unwrap();
        assert!(
            take(locks, ours.clone(), mode).await.is_none(),
            "{theirs:?}"
        );
        // theirs says nothing when it unlocks: our waiter looks for itself
        let waiting = tokio::spawn(locks.lock(ours.clone()).acquire());
        until_waiting(database, 1).await;
        held.release_now().await.unwrap();
        let guard = within(PATIENCE, "the lock that sqlx has released", waiting).await;
        guard.unwrap().unwrap().release().await.unwrap();
    }
}

/// Plain SQL takes part by the md5 formula, with and without a namespace, in both modes.
#[test]
fn plain_sql_takes_part() {
    const NAME: &str = "('x' || md5('daily-report'))::bit(64)::bigint";
    const IN_NAMESPACE: &str = "('x' || md5(octet_length('billing') || ':' || 'billing' \
                                || 'daily-report'))::bit(64)::bigint";
    run(async || {
        let database = TestDatabase::create().await;
        let mut sql = database.connect().await;
        let plain = node(&database).await;
        let backend = SessionOptions::new()
            .connect(&database.url())
            .await
            .unwrap();
        let billing = sqlock::Locks::builder(backend).namespace("billing").build();
        for (locks, id) in [(&plain, NAME), (&billing, IN_NAMESPACE)] {
            for (ours, theirs, together) in [
                (Mode::Exclusive, "", false),
                (Mode::Exclusive, "_shared", false),
                (Mode::Shared, "", false),
                (Mode::Shared, "_shared", true),
            ] {
                let what = format!("{id}: {ours:?} beside {theirs:?}");
                let guard = take(locks, "daily-report", ours).await.unwrap();
                assert_eq!(try_sql(&mut sql, theirs, id).await, together, "{what}");
                guard.release().await.unwrap();
                execute(&mut sql, "select pg_advisory_unlock_all()").await;

                assert!(try_sql(&mut sql, theirs, id).await);
                let guard = take(locks, "daily-report", ours).await;
                assert_eq!(guard.is_some(), together, "{what}");
                if let Some(guard) = guard {
                    guard.release().await.unwrap();
                }
                execute(&mut sql, "select pg_advisory_unlock_all()").await;
            }
        }
    });
}

/// SQL that unlocks and says so wakes our waiter at once, also of a pair.
#[test]
fn plain_sql_wakes_waiters() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut sql = database.connect().await;
        let rarely = SessionOptions::new().poll_interval(Duration::from_secs(20));
        let locks = node_with(&database, rarely).await;
        let mut times = Times::default();
        let name = "('x' || md5('wake me'))::bit(64)::bigint";
        let name: i64 = ask(&mut sql, &format!("select {name}")).await;
        for round in 0..10 {
            let (lock, key) = if round % 2 == 0 {
                (locks.lock("wake me"), name.to_string())
            } else {
                (locks.lock((-3, 4)), "-3,4".to_owned())
            };
            execute(&mut sql, &format!("select pg_advisory_lock({key})")).await;
            let waiting = tokio::spawn(lock.acquire());
            until_waiting(&database, 1).await;
            execute(&mut sql, &format!("select pg_advisory_unlock({key})")).await;
            execute(&mut sql, &format!("notify sqlock, '{key}'")).await;
            let granted = within(PATIENCE, "a waiter that was told", waiting);
            let guard = times.measure(granted).await.unwrap().unwrap();
            guard.release().await.unwrap();
        }
        times.assert_at_most(Duration::from_millis(100), Duration::from_secs(5));
    });
}

async fn take(locks: &SessionLocks, key: impl IntoLockKey, mode: Mode) -> Option<Guard> {
    let lock = locks.lock(key);
    let lock = if mode == Mode::Shared {
        lock.shared()
    } else {
        lock
    };
    lock.try_acquire().await.unwrap()
}

async fn try_sql(connection: &mut PgConnection, suffix: &str, id: &str) -> bool {
    ask(
        connection,
        &format!("select pg_try_advisory_lock{suffix}({id})"),
    )
    .await
}
