//! Beside an application's pool, and in one session: nothing stays held, and nothing is held twice.

use std::time::Duration;

use sqlock_tests::TestDatabase;
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::{task::JoinSet, time::sleep};

use crate::support::{
    PATIENCE, SessionOptions, ask, execute, ids_held, join_all, keys_held, node, node_with, run,
};

/// Case 7: a connection that goes back to its pool takes no lock along.
#[test]
fn a_dropped_guard_leaves_nothing_held_beside_a_pool_of_one() {
    run(async || {
        let database = TestDatabase::create().await;
        let pool = pool(&database, 1).await;
        let locks = node(&database).await;
        for _ in 0..20 {
            let guard = locks.acquire("k").await.unwrap();
            let own: i32 = ask(
                &mut pool.acquire().await.unwrap(),
                "select pg_backend_pid()",
            )
            .await;
            let held = keys_held(&database).await;
            assert_eq!(held.len(), 1, "{held:?}");
            assert_ne!(
                held[0].pid, own,
                "the lock is on the application's connection"
            );
            drop(guard);
            database.wait_until_no_advisory_locks(PATIENCE).await;
        }
        let guard = locks.acquire("k").await.unwrap();
        guard.release().await.unwrap();
        assert_eq!(database.advisory_locks().await, []);
    });
}

/// Case 8: the unlock meets the session that has the lock, whoever sends it.
#[test]
fn lock_and_unlock_meet_in_one_session() {
    run(async || {
        let database = TestDatabase::create().await;
        let locks = node(&database).await;
        for _ in 0..5 {
            let mut tasks = JoinSet::new();
            for name in 0..20 {
                let locks = locks.clone();
                tasks.spawn(async move { locks.acquire(name).await.unwrap() });
            }
            let guards = join_all(tasks).await;
            let held = keys_held(&database).await;
            assert_eq!(held.len(), 20);
            assert!(held.iter().all(|lock| lock.pid == held[0].pid), "{held:?}");
            let mut tasks = JoinSet::new();
            for guard in guards {
                tasks.spawn(guard.release());
            }
            for released in join_all(tasks).await {
                released.unwrap();
            }
            assert_eq!(database.advisory_locks().await, []);
        }
    });
}

/// Case 9: a session re-enters its own lock, so that one unlock would leave it held. Ours takes it
/// once, and two tasks of one process exclude each other.
#[test]
fn one_session_takes_a_key_once() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut other = database.connect().await;
        let locks = node(&database).await;

        let guard = locks.acquire(9).await.unwrap();
        assert!(locks.try_acquire(9).await.unwrap().is_none());
        guard.release().await.unwrap();
        assert!(ask::<bool>(&mut other, "select pg_try_advisory_lock(9)").await);
        execute(&mut other, "select pg_advisory_unlock(9)").await;

        let one = locks.lock(9).shared().acquire().await.unwrap();
        let two = locks.lock(9).shared().acquire().await.unwrap();
        one.release().await.unwrap();
        assert!(!ask::<bool>(&mut other, "select pg_try_advisory_lock(9)").await);
        two.release().await.unwrap();
        assert!(ask::<bool>(&mut other, "select pg_try_advisory_lock(9)").await);
    });
}

/// Case 10: what keeps the session alive does not lock again.
#[test]
fn heartbeats_do_not_take_the_lock_again() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut other = database.connect().await;
        let often = SessionOptions::new().heartbeat(Duration::from_millis(20), PATIENCE);
        let locks = node_with(&database, often).await;

        let guard = locks.acquire(10).await.unwrap();
        sleep(Duration::from_millis(500)).await;
        let backends = database.backends().await;
        assert!(
            backends
                .iter()
                .any(|b| b.query == "select pg_backend_pid()"),
            "no heartbeat was sent: {backends:?}"
        );
        guard.release().await.unwrap();
        assert!(ask::<bool>(&mut other, "select pg_try_advisory_lock(10)").await);
    });
}

/// Case 11: a lock function in a WHERE clause locks every row that is visited. Ours locks what is
/// asked for.
#[test]
fn only_the_key_that_is_asked_for_is_locked() {
    run(async || {
        let database = TestDatabase::create().await;
        let pool = pool(&database, 1).await;
        let rows = "create table jobs as select id::bigint from generate_series(1, 50) as id";
        execute(&mut pool.acquire().await.unwrap(), rows).await;
        let next = "select id from jobs where id % 17 = 0 order by id limit 1";
        let id: i64 = ask(&mut pool.acquire().await.unwrap(), next).await;
        let locks = node(&database).await;

        let guard = locks.acquire(id).await.unwrap();
        assert_eq!(ids_held(&database).await, [17]);
        let others = locks.acquire_all([3, 41, 5]).await.unwrap();
        assert_eq!(ids_held(&database).await, [3, 5, 17, 41]);
        others.release().await.unwrap();
        guard.release().await.unwrap();
        assert_eq!(database.advisory_locks().await, []);
    });
}

/// Case 12: an error in the body, which leaves the application's transaction aborted, does not
/// reach the lock.
#[test]
fn an_error_in_the_body_frees_the_lock() {
    run(async || {
        let database = TestDatabase::create().await;
        let pool = pool(&database, 1).await;
        let locks = node(&database).await;
        let mut transaction = pool.begin().await.unwrap();
        let outcome = locks.with_lock("k", async |_| {
            sqlx::query("select 1/0").execute(&mut *transaction).await?;
            anyhow::Ok(())
        });
        let error = outcome.await.unwrap_err();
        let error = error.downcast::<sqlx::Error>().unwrap();
        let code = error.as_database_error().unwrap().code().unwrap();
        assert_eq!(code, "22012");
        // the transaction is aborted still
        let aborted = sqlx::query("select 1").execute(&mut *transaction).await;
        assert!(aborted.is_err());
        database.wait_until_no_advisory_locks(PATIENCE).await;
        locks.acquire("k").await.unwrap().release().await.unwrap();
    });
}

/// Case 13: locks take nothing of the connections that the application works with, and want none.
#[test]
fn holders_take_no_connection_of_the_pool() {
    run(async || {
        let database = TestDatabase::create().await;
        let pool = pool(&database, 5).await;
        let locks = node(&database).await;

        let mut guards = Vec::new();
        for key in 0..5 {
            guards.push(locks.acquire(key).await.unwrap());
        }
        let mut working = Vec::new();
        for _ in 0..5 {
            working.push(pool.acquire().await.unwrap());
        }
        assert_eq!(database.count_connections().await, 6);
        // and the other way: with all of the pool taken
        for key in 5..10 {
            guards.push(locks.acquire(key).await.unwrap());
        }
        assert_eq!(database.count_connections().await, 6);
        assert_eq!(ids_held(&database).await.len(), 10);
        for connection in &mut working {
            execute(connection, "select 1").await;
        }
    });
}

async fn pool(database: &TestDatabase, size: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(Duration::from_secs(3))
        .connect_with(database.options())
        .await
        .unwrap()
}
