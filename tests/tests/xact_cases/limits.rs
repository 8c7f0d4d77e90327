//! The limits of the application's transaction, which are as before after a lock was asked for.

use std::time::Duration;

use sqlock::{
    Error, Wait,
    xact::{lock_all_in, lock_in, try_lock_in},
};
use sqlx::PgConnection;
use tokio::time::{Instant, sleep};

use crate::{
    support::{PATIENCE, execute},
    world::{both_ways, fails, value},
};

const BRIEF: Duration = Duration::from_millis(80);

#[derive(Debug, PartialEq, Eq)]
struct Limits {
    lock: String,
    statement: String,
    isolation: String,
}

async fn limits(connection: &mut PgConnection) -> Limits {
    let setting = async |connection: &mut PgConnection, name: &str| {
        value(connection, &format!("select current_setting('{name}')")).await
    };
    Limits {
        lock: setting(connection, "lock_timeout").await,
        statement: setting(connection, "statement_timeout").await,
        isolation: setting(connection, "transaction_isolation").await,
    }
}

/// On success, refusal, timeout, and failure; of the session, of the transaction, and of none.
#[test]
fn they_are_as_before_however_it_ends() {
    both_ways(async |world| {
        let locks = world.locks();
        for set in [
            "select 1",
            "set local lock_timeout = '1234ms'",
            "set local lock_timeout = '1h'; set local statement_timeout = '90min'",
            "set local lock_timeout = '2d'",
            "savepoint s; set local lock_timeout = 10; release savepoint s",
        ] {
            let mut connection = world.connect().await;
            let at_first = limits(&mut connection).await;
            execute(&mut connection, "begin").await;
            execute(&mut connection, set).await;
            let before = limits(&mut connection).await;

            assert!(try_lock_in(&mut connection, 1).await.unwrap());
            assert_eq!(limits(&mut connection).await, before);
            let guard = locks.acquire_all([2, 3]).await.unwrap();
            assert!(!try_lock_in(&mut connection, 2).await.unwrap());
            assert_eq!(limits(&mut connection).await, before);
            let refused = lock_in(&mut connection, 2, BRIEF).await.unwrap_err();
            assert!(matches!(refused, Error::Timeout { .. }), "{refused:?}");
            assert_eq!(limits(&mut connection).await, before);
            let refused = lock_all_in(&mut connection, [3, 4, 2], BRIEF).await;
            assert!(matches!(refused, Err(Error::Timeout { .. })));
            assert_eq!(limits(&mut connection).await, before);
            let (waited, ()) =
                tokio::join!(lock_all_in(&mut connection, [2, 3, 4], PATIENCE), async {
                    sleep(BRIEF).await;
                    guard.release().await.unwrap();
                });
            waited.unwrap();
            assert_eq!(limits(&mut connection).await, before, "{set}");
            lock_in(&mut connection, 5, Wait::forever()).await.unwrap();
            assert_eq!(limits(&mut connection).await, before, "{set}");

            // the transaction is alive, and what is of it ends with it
            execute(&mut connection, "insert into work values (1)").await;
            execute(&mut connection, "rollback").await;
            assert_eq!(limits(&mut connection).await, at_first);
        }
        world.is_clean().await;
    });
}

/// What the application sets for its session within the transaction outlives it all the same.
#[test]
fn what_is_set_for_the_session_stays_so() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut connection = world.connect().await;
        execute(&mut connection, "set lock_timeout = '7s'; begin").await;
        let guard = locks.acquire(1).await.unwrap();
        lock_in(&mut connection, 1, BRIEF).await.unwrap_err();
        assert_eq!(limits(&mut connection).await.lock, "7s");
        execute(&mut connection, "set lock_timeout = '8s'").await;
        let (waited, ()) = tokio::join!(lock_in(&mut connection, 1, PATIENCE), async {
            sleep(BRIEF).await;
            guard.release().await.unwrap();
        });
        waited.unwrap();
        assert_eq!(limits(&mut connection).await.lock, "8s");
        // nor does a roll-back to a savepoint of before the lock bring ours back
        execute(&mut connection, "savepoint s").await;
        lock_in(&mut connection, 2, BRIEF).await.unwrap();
        execute(&mut connection, "rollback to savepoint s").await;
        assert_eq!(limits(&mut connection).await.lock, "8s");
        execute(&mut connection, "commit; set lock_timeout to default").await;
    });
}

/// Case 4: through a pooler with one server connection the next client sees nothing of it.
#[test]
fn the_next_client_sees_nothing_of_it() {
    crate::world::pooled(&[("default_pool_size", "1")], async |world| {
        let mut holder = world.database.connect().await;
        execute(&mut holder, "select pg_advisory_lock(1)").await;
        let (mut one, mut other) = (world.connect().await, world.connect().await);
        for _ in 0..3 {
            execute(&mut one, "begin").await;
            lock_in(&mut one, 1, BRIEF).await.unwrap_err();
            lock_in(&mut one, 2, BRIEF).await.unwrap();
            execute(&mut one, "commit").await;
            assert_eq!(limits(&mut other).await.lock, "0");
            let guard = value::<String>(
                &mut other,
                "select coalesce(current_setting('sqlock.guard', true), '')",
            )
            .await;
            assert_eq!(guard, "");
        }
    });
}

/// The budget is that of all keys together, and is kept to.
#[test]
fn one_budget_for_all_keys() {
    both_ways(async |world| {
        let mut holders = Vec::new();
        for key in 1..=4 {
            let mut holder = world.database.connect().await;
            execute(&mut holder, &format!("select pg_advisory_lock({key})")).await;
            holders.push(holder);
        }
        let mut transaction = world.pool(1).begin().await.unwrap();
        let budget = Duration::from_secs(1);
        let started = Instant::now();
        // one becomes free after the other, faster than the budget, but not all of them
        let (waited, ()) =
            tokio::join!(lock_all_in(&mut transaction, [1, 2, 3, 4], budget), async {
                for holder in holders.drain(..3) {
                    sleep(Duration::from_millis(300)).await;
                    drop(holder);
                }
            });
        let took = started.elapsed();
        let Err(Error::Timeout { waited, .. }) = waited else {
            panic!("{waited:?}");
        };
        assert!(waited >= Duration::from_millis(950), "{waited:?}");
        assert!(took < Duration::from_millis(1600), "{took:?}");
        // what it had meanwhile is free
        let mut other = world.database.connect().await;
        for key in 1..=3 {
            let free = format!("select pg_try_advisory_lock({key})");
            assert!(value::<bool>(&mut other, &free).await, "{key}");
        }
        assert_eq!(value::<i32>(&mut transaction, "select 1").await, 1);
    });
}

/// A `statement_timeout` that is shorter than the budget ends the wait; one that is longer does not
/// lengthen it.
#[test]
fn a_limit_of_the_application_for_statements() {
    both_ways(async |world| {
        let _guard = world.locks().acquire(1).await.unwrap();
        let mut transaction = world.pool(1).begin().await.unwrap();
        for (statement_timeout, budget) in [("100ms", PATIENCE), ("1min", BRIEF)] {
            let set = format!("set local statement_timeout = '{statement_timeout}'");
            execute(&mut transaction, &set).await;
            let started = Instant::now();
            let refused = lock_in(&mut transaction, 1, budget).await.unwrap_err();
            assert!(matches!(refused, Error::Timeout { .. }), "{refused:?}");
            assert!(started.elapsed() < Duration::from_secs(2));
            let statement_timeout_now = limits(&mut transaction).await.statement;
            assert_eq!(statement_timeout_now, statement_timeout);
            execute(&mut transaction, "insert into work values (1)").await;
        }
        drop(transaction);
    });
}

/// Somebody else's cancellation is no limit of ours; the transaction goes on.
#[test]
fn a_cancellation_by_somebody_else() {
    both_ways(async |world| {
        let _guard = world.locks().acquire(1).await.unwrap();
        let mut transaction = world.pool(1).begin().await.unwrap();
        execute(&mut transaction, "insert into work values (1)").await;
        let pid: i32 = value(&mut transaction, "select pg_backend_pid()").await;
        let mut other = world.database.connect().await;
        let (waited, ()) = tokio::join!(lock_in(&mut transaction, 1, PATIENCE), async {
            sleep(BRIEF).await;
            execute(&mut other, &format!("select pg_cancel_backend({pid})")).await;
        });
        let error = waited.unwrap_err();
        assert!(matches!(error, Error::Backend { .. }), "{error:?}");
        assert_eq!(limits(&mut transaction).await.lock, "0");
        transaction.commit().await.unwrap();
        world.has_work(&[1]).await;
    });
}

/// What fails within the application's own savepoint is the application's; ours leave none behind.
#[test]
fn no_savepoint_is_left_behind() {
    both_ways(async |world| {
        let guard = world.locks().acquire(1).await.unwrap();
        let mut transaction = world.pool(1).begin().await.unwrap();
        try_lock_in(&mut transaction, 1).await.unwrap();
        lock_in(&mut transaction, 1, BRIEF).await.unwrap_err();
        lock_all_in(&mut transaction, [1, 2], BRIEF)
            .await
            .unwrap_err();
        lock_all_in(&mut transaction, [2, 3], BRIEF).await.unwrap();
        let code = fails(&mut transaction, "rollback to savepoint sqlock").await;
        assert_eq!(code, "3B001");
        drop((transaction, guard));
        world.is_clean().await;
    });
}
