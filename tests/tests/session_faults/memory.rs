//! The server's lock memory, which is everybody's.

use std::time::Duration;

use sqlock::Error;
use sqlock_tests::{PostgresServer, TestDatabase};
use sqlx::PgConnection;
use tokio::task::JoinSet;

use crate::support::{
    Guard, PATIENCE, SessionLocks, ask, execute, join_all, keys_held, node, run, within,
};

const SETTING: &str = "max_locks_per_transaction";

/// 10,000 locks at once, in one session, where the server's settings allow for it.
#[test]
fn one_connection_holds_ten_thousand_locks() {
    const LOCKS: i64 = 10_000;
    run(async || {
        let server = server("512").await;
        let database = server.database().await;
        let locks = node(&database).await;
        let mut tasks = JoinSet::new();
        for key in 0..LOCKS {
            let lock = locks.lock(key);
            tasks.spawn(async move { lock.await.unwrap() });
        }
        let guards = join_all(tasks).await;
        let held = keys_held(&database).await;
        assert_eq!(i64::try_from(held.len()).unwrap(), LOCKS);
        assert!(held.iter().all(|lock| lock.pid == held[0].pid));
        assert_eq!(database.count_connections().await, 1);
        others_are_served(&database).await;

        let mut releases = JoinSet::new();
        for guard in guards {
            releases.spawn(guard.release());
        }
        for released in join_all(releases).await {
            released.unwrap();
        }
        assert_eq!(database.advisory_locks().await, []);

        let all = within(PATIENCE, "one guard", locks.acquire_all(0..LOCKS))
            .await
            .unwrap();
        assert_eq!(
            i64::try_from(keys_held(&database).await.len()).unwrap(),
            LOCKS
        );
        drop(all);
        database.wait_until_no_advisory_locks(PATIENCE).await;
    });
}

/// On a server with the default settings the budget answers first, and names the setting. The
/// server goes on serving others.
#[test]
fn the_budget_answers_before_the_server_is_out_of_memory() {
    run(async || {
        let server = server("64").await;
        let database = server.database().await;
        let locks = node(&database).await;
        let (guards, error) = take_all(&locks, 0).await;
        match error {
            Error::LockBudget {
                in_use,
                budget,
                setting,
            } => {
                assert_eq!(setting, SETTING);
                // a quarter of 64 × 100
                assert_eq!((in_use, budget), (1600, 1600));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(keys_held(&database).await.len(), guards.len());
        assert_eq!(guards.len(), 1600);
        others_are_served(&database).await;

        // waiting counts too, and those who are refused leave nothing
        let waiting = locks.acquire_within(5000, PATIENCE).await;
        assert!(
            matches!(waiting, Err(Error::LockBudget { .. })),
            "{waiting:?}"
        );
        let several = locks.lock_all([5000, 5001]).try_acquire().await;
        assert!(
            matches!(several, Err(Error::LockBudget { .. })),
            "{several:?}"
        );
        assert_eq!(database.advisory_locks().await.len(), guards.len());
        drop(guards);
        database.wait_until_no_advisory_locks(PATIENCE).await;
        locks.acquire(5000).await.unwrap().release().await.unwrap();
    });
}

/// Somebody else uses up the lock memory: ours is told so, holds nothing of what it asked for, and
/// goes on when the memory is free again.
#[test]
fn lock_memory_that_others_used_up_is_told() {
    run(async || {
        let server = server("64").await;
        let database = server.database().await;
        // before: the server takes no new connections then
        let mut observer = database.connect().await;
        assert_eq!(held_by_others(&mut observer, 0).await, 0);
        let mut hog = database.connect().await;
        let hog_pid: i32 = ask(&mut hog, "select pg_backend_pid()").await;
        let locks = node(&database).await;
        let before = locks.acquire(-1).await.unwrap();

        for first in [1_000_000, 2_000_000, 3_000_000] {
            let all = format!(
                "select count(pg_advisory_lock(k)) from generate_series({first}, {first} + 99999) as k"
            );
            let code = sqlx::raw_sql(sqlx::AssertSqlSafe(all))
                .execute(&mut hog)
                .await;
            let error = code.unwrap_err();
            assert_eq!(error.as_database_error().unwrap().code().unwrap(), "53200");
        }

        let tried = within(PATIENCE, "a try", locks.try_acquire(1)).await;
        let error = tried.expect_err("there is no memory for a lock");
        match &error {
            Error::LockMemory { setting, .. } => assert_eq!(*setting, SETTING),
            other => panic!("{other:?}"),
        }
        assert!(error.is_retryable());
        let several = within(PATIENCE, "a try", locks.lock_all([2, 3, 4]).try_acquire()).await;
        assert!(several.is_err(), "{several:?}");
        let ours = held_by_others(&mut observer, hog_pid).await;
        assert_eq!(
            ours,
            i64::from(before.check().is_ok()),
            "what was asked for is held"
        );

        // while it lasts, a waiter is told as well, or waits until it is over
        let waiting = tokio::spawn(locks.lock(5).within(PATIENCE).acquire());
        execute(&mut hog, "select pg_advisory_unlock_all()").await;
        match within(PATIENCE, "a waiter", waiting).await.unwrap() {
            Ok(guard) => guard.release().await.unwrap(),
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        let guard = locks.acquire_within(1, PATIENCE).await.unwrap();
        guard.release().await.unwrap();
        drop(before);
        database.wait_until_no_advisory_locks(PATIENCE).await;
        others_are_served(&database).await;
    });
}

async fn server(locks_per_transaction: &str) -> PostgresServer {
    PostgresServer::start(&[(SETTING, locks_per_transaction), ("max_connections", "100")]).await
}

/// Takes locks until it is refused one.
async fn take_all(locks: &SessionLocks, first: i64) -> (Vec<Guard>, Error) {
    let mut guards = Vec::new();
    for key in first.. {
        match locks.try_acquire(key).await {
            Ok(guard) => guards.push(guard.expect("nobody else locks")),
            Err(error) => return (guards, error),
        }
    }
    unreachable!("the server has no end of memory")
}

/// A new connection, and an INSERT into a new table, which needs locks of its own.
async fn others_are_served(database: &TestDatabase) {
    let work = async {
        let mut other = database.connect().await;
        execute(&mut other, "create table if not exists work (n int)").await;
        execute(&mut other, "insert into work values (1)").await;
    };
    within(Duration::from_secs(5), "others", work).await;
}

async fn held_by_others(observer: &mut PgConnection, pid: i32) -> i64 {
    let count = "select count(*) from pg_locks where locktype = 'advisory' and pid <> $1";
    sqlx::query_scalar(count)
        .bind(pid)
        .fetch_one(observer)
        .await
        .unwrap()
}
