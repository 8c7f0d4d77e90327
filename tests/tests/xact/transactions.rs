//! The work that goes with a lock.

use std::time::Duration;

use sqlock::{Error, Locks, LossCause, XactBackend, xact::XactHeld};
use sqlock_tests::{TestDatabase, eventually};
use sqlx::{AssertSqlSafe, Connection as _, PgPool, postgres::PgPoolOptions};
use tokio::time::{sleep, timeout};

type Guard = sqlock::LockGuard<XactHeld>;

const PATIENCE: Duration = Duration::from_secs(10);

struct World {
    database: TestDatabase,
    pool: PgPool,
    locks: Locks<XactBackend>,
}

impl World {
    async fn new(connections: u32) -> Self {
        let database = TestDatabase::create().await;
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(Duration::from_secs(2))
            .connect_lazy_with(database.options());
        let mut connection = database.connect().await;
        run(
            &mut connection,
            "create table work (n int unique deferrable initially deferred)",
        )
        .await;
        let locks = Locks::new(XactBackend::new(pool.clone()));
        Self {
            database,
            pool,
            locks,
        }
    }

    async fn rows(&self) -> i64 {
        let mut connection = self.database.connect().await;
        let count = sqlx::query_scalar("select count(*) from work");
        count.fetch_one(&mut connection).await.unwrap()
    }

    async fn backend_of(guard: &mut Guard) -> i32 {
        let pid = sqlx::query_scalar("select pg_backend_pid()");
        pid.fetch_one(guard.connection()).await.unwrap()
    }

    /// Nothing held, and no connection within a transaction.
    async fn is_clean(&self) {
        self.database.wait_until_no_advisory_locks(PATIENCE).await;
        eventually(PATIENCE, async || {
            let backends = self.database.backends().await;
            backends.iter().all(|backend| {
                !backend
                    .state
                    .as_deref()
                    .unwrap_or("")
                    .starts_with("idle in transaction")
            })
        })
        .await;
    }
}

async fn run(connection: &mut sqlx::PgConnection, statement: &str) {
    let query = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
    query.execute(connection).await.unwrap();
}

#[tokio::test]
async fn work_and_lock_end_together() {
    let world = World::new(4).await;
    let mut guard = world.locks.acquire("k").await.unwrap();
    run(guard.connection(), "insert into work values (1)").await;
    assert_eq!(world.rows().await, 0);
    assert!(world.locks.try_acquire("k").await.unwrap().is_none());
    guard.commit().await.unwrap();
    assert_eq!(world.rows().await, 1);

    let mut guard = world.locks.acquire("k").await.unwrap();
    run(guard.connection(), "insert into work values (2)").await;
    guard.roll_back().await.unwrap();
    let mut guard = world.locks.acquire("k").await.unwrap();
    run(guard.connection(), "insert into work values (3)").await;
    drop(guard);
    // a generic end is the normal one
    let mut guard = world.locks.acquire("k").await.unwrap();
    run(guard.connection(), "insert into work values (4)").await;
    guard.release().await.unwrap();
    assert_eq!(world.rows().await, 2);
    world.is_clean().await;
}

#[tokio::test]
async fn a_body_that_fails_rolls_back() {
    let world = World::new(4).await;
    let failed: Result<Option<()>, sqlx::Error> = {
        let body = async |lock: &mut Guard| {
            run(lock.connection(), "insert into work values (1)").await;
            Err::<(), Box<dyn std::error::Error>>("no".into())
        };
        let outcome = world.locks.run_once("k", body).await;
        outcome.unwrap_err();
        Ok(None)
    };
    failed.unwrap();
    assert_eq!(world.rows().await, 0);
    let body = async |lock: &mut Guard| {
        run(lock.connection(), "insert into work values (2)").await;
        Ok::<_, Error>(())
    };
    world.locks.run_once("k", body).await.unwrap().unwrap();
    assert_eq!(world.rows().await, 1);
    world.is_clean().await;
}

/// COMMIT of an aborted transaction answers ROLLBACK; that is not a success.
#[tokio::test]
async fn an_aborted_transaction_is_not_committed() {
    let world = World::new(4).await;
    let mut guard = world.locks.acquire("k").await.unwrap();
    run(guard.connection(), "insert into work values (1)").await;
    sqlx::raw_sql("select 1/0")
        .execute(guard.connection())
        .await
        .unwrap_err();
    // the lock was free at that moment
    let next = world
        .locks
        .try_acquire("k")
        .await
        .unwrap()
        .expect("it is free");
    let probed = guard.held_mut().probe().await.unwrap_err();
    assert!(matches!(probed, Error::Aborted { .. }), "{probed:?}");
    assert!(guard.check().is_err());
    drop(guard);
    next.release().await.unwrap();

    let mut guard = world.locks.acquire("k").await.unwrap();
    run(guard.connection(), "insert into work values (1)").await;
    sqlx::raw_sql("select 1/0")
        .execute(guard.connection())
        .await
        .unwrap_err();
    let error = guard.commit().await.unwrap_err();
    assert!(matches!(error, Error::Aborted { .. }), "{error:?}");
    assert_eq!(world.rows().await, 0);
    world.is_clean().await;
}

/// What the database checks at the end only.
#[tokio::test]
async fn a_commit_that_the_server_refuses_is_not_one() {
    let world = World::new(4).await;
    let mut guard = world.locks.acquire("k").await.unwrap();
    run(guard.connection(), "insert into work values (1), (1)").await;
    let error = guard.commit().await.unwrap_err();
    assert!(matches!(error, Error::Aborted { .. }), "{error:?}");
    assert_eq!(world.rows().await, 0);
    world.is_clean().await;
}

/// The user's own SQL ends the lock unseen, in every way that there is.
#[tokio::test]
async fn a_transaction_that_the_user_ended_is_a_loss() {
    let world = World::new(4).await;
    for sql in [
        "commit",
        "rollback",
        "commit; begin",
        "commit and chain",
        "rollback; begin",
    ] {
        let mut guard = world.locks.acquire("k").await.unwrap();
        run(guard.connection(), sql).await;
        let error = guard.commit().await.unwrap_err();
        let cause = LossCause::TransactionEnded;
        assert!(
            matches!(&error, Error::Lost { cause: found, .. } if *found == cause),
            "{sql}: {error:?}"
        );
        world.is_clean().await;
    }
}

/// Whether the work is there is not known then, and the error says so.
#[tokio::test]
async fn a_connection_that_is_lost_at_the_commit_leaves_it_unknown() {
    let world = World::new(4).await;
    let mut guard = world.locks.acquire("k").await.unwrap();
    run(guard.connection(), "insert into work values (1)").await;
    let pid = World::backend_of(&mut guard).await;
    world.database.terminate(pid).await;
    let error = guard.commit().await.unwrap_err();
    assert!(matches!(error, Error::CommitUnknown { .. }), "{error:?}");
    assert_eq!(world.rows().await, 0);
    let mut next = world.locks.acquire("k").await.unwrap();
    run(next.connection(), "insert into work values (2)").await;
    next.commit().await.unwrap();
    assert_eq!(world.rows().await, 1);
}

/// A nested transaction of sqlx's is a savepoint.
#[tokio::test]
async fn nested_transactions_are_savepoints() {
    let world = World::new(4).await;
    let mut guard = world.locks.acquire("k").await.unwrap();
    let mut inner = guard.connection().begin().await.unwrap();
    run(&mut inner, "insert into work values (1)").await;
    inner.rollback().await.unwrap();
    let mut inner = guard.connection().begin().await.unwrap();
    run(&mut inner, "insert into work values (2)").await;
    inner.commit().await.unwrap();
    guard.held_mut().probe().await.unwrap();
    assert!(world.locks.try_acquire("k").await.unwrap().is_none());
    guard.commit().await.unwrap();
    assert_eq!(world.rows().await, 1);
    world.is_clean().await;
}

/// Case 32: the server's own killers.
#[tokio::test]
async fn an_idle_transaction_that_is_killed_is_a_loss() {
    let world = World::new(4).await;
    let mut guard = world.locks.acquire("k").await.unwrap();
    run(
        guard.connection(),
        "set local idle_in_transaction_session_timeout = '50ms'",
    )
    .await;
    sleep(Duration::from_millis(300)).await;
    let error = guard.held_mut().probe().await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Lost {
                cause: LossCause::TransactionTimedOut,
                ..
            }
        ),
        "{error:?}"
    );
    drop(guard);
    world
        .locks
        .acquire("k")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

/// Cases 14 and 15, at every moment.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_acquires_leave_nothing() {
    let world = World::new(4).await;
    for round in 0..300_u64 {
        let acquire = world.locks.try_acquire(format!("k{round}"));
        drop(timeout(Duration::from_micros(round * 4), acquire).await);
    }
    world.is_clean().await;
    for _ in 0..4 {
        world
            .locks
            .acquire("k")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
}

/// Case 13: a pool that is used up is a bounded wait and an error that says so.
#[tokio::test]
async fn a_pool_of_one_is_never_stuck() {
    let world = World::new(1).await;
    let guard = world.locks.acquire("a").await.unwrap();
    let error = world.locks.try_acquire("b").await.unwrap_err();
    assert!(error.is_retryable());
    assert!(
        format!("{error:?}").contains("make the pool larger"),
        "{error:?}"
    );
    drop(guard);
    for _ in 0..20 {
        drop(world.locks.acquire("a").await.unwrap());
    }
    let one: i32 = sqlx::query_scalar("select 1")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(one, 1);
    world.is_clean().await;
}

/// A shut-down tells the guards, and waits for those who work in them.
#[tokio::test]
async fn a_shutdown_waits_for_the_work() {
    let world = World::new(4).await;
    let mut guard = world.locks.acquire("k").await.unwrap();
    run(guard.connection(), "insert into work values (1)").await;
    let lost = guard.lost();
    let locks = world.locks.clone();
    let shutdown = tokio::spawn(async move { locks.shutdown().await });
    let error = timeout(PATIENCE, lost).await.unwrap();
    assert!(matches!(
        error,
        Error::Lost {
            cause: LossCause::ShutDown,
            ..
        }
    ));
    assert!(!shutdown.is_finished());
    assert!(matches!(guard.commit().await, Err(Error::Lost { .. })));
    timeout(PATIENCE, shutdown).await.unwrap().unwrap().unwrap();
    assert!(matches!(
        world.locks.try_acquire("k").await,
        Err(Error::ShutDown { .. })
    ));
    assert_eq!(world.rows().await, 0);
    world.is_clean().await;
}
