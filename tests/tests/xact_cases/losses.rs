//! What becomes of a lock, and of its work, when its transaction is ended by others.

use std::time::Duration;

use sqlock::{Error, LossCause};
use sqlx::AssertSqlSafe;
use tokio::time::sleep;

use crate::{
    support::{PATIENCE, execute, within},
    world::{both_ways, directly, fails, insert, pooled, process},
};

/// The work of a holder whose backend was killed before its commit is not there, and the next
/// holder's is.
#[test]
fn the_work_of_a_killed_holder_is_not_there() {
    both_ways(async |world| {
        let (one, other) = (world.locks(), world.locks());
        for n in 0..5 {
            let mut guard = one.acquire("k").await.unwrap();
            insert(&mut guard, n).await;
            let pid = process(guard.connection()).await;
            let next = other.lock("k").within(PATIENCE);
            let next = tokio::spawn(async move { next.await.unwrap() });
            sleep(Duration::from_millis(30)).await;
            world.database.terminate(pid).await;
            let mut next = within(PATIENCE, "the next holder", next).await.unwrap();
            insert(&mut next, 100 + n).await;
            // the killed one still believes, and its commit does not say so
            assert!(guard.commit().await.is_err());
            next.commit().await.unwrap();
        }
        world.has_work(&[100, 101, 102, 103, 104]).await;
        world.is_clean().await;
    });
}

/// Nobody reads the connection while it is idle: a probe finds out, and tells all who watch.
#[test]
fn a_probe_finds_out_and_fires_the_signal() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        guard.held_mut().probe().await.unwrap();
        let watching = tokio::spawn(guard.lost().wait());
        let pid = process(guard.connection()).await;
        world.database.terminate(pid).await;
        sleep(Duration::from_millis(100)).await;
        guard.check().unwrap();
        assert!(!watching.is_finished(), "it is not learned by itself");

        let error = guard.held_mut().probe().await.unwrap_err();
        let cause = LossCause::ConnectionClosed;
        assert!(matches!(&error, Error::Lost { cause: found, .. } if *found == cause));
        let told = within(PATIENCE, "the signal", watching).await.unwrap();
        assert!(matches!(told, Error::Lost { .. }));
        assert!(guard.check().is_err());
        assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
        world.is_clean().await;
    });
}

#[test]
fn a_probe_tells_a_transaction_that_has_failed() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        let lost = guard.lost();
        fails(guard.connection(), "select 1/0").await;
        let error = guard.held_mut().probe().await.unwrap_err();
        assert!(matches!(error, Error::Aborted { .. }), "{error:?}");
        assert_eq!(lost.cause(), Some(LossCause::TransactionAborted));
        guard.roll_back().await.unwrap();

        // where the failure was within a savepoint the transaction is sound
        let mut guard = locks.acquire("k").await.unwrap();
        execute(guard.connection(), "savepoint s").await;
        fails(guard.connection(), "select 1/0").await;
        execute(guard.connection(), "rollback to savepoint s").await;
        guard.held_mut().probe().await.unwrap();
        guard.commit().await.unwrap();
        world.is_clean().await;
    });
}

/// A body that probes is stopped where it stands.
#[test]
fn a_body_that_probes_is_stopped() {
    directly(async |world| {
        let locks = world.locks();
        let body = locks.with_lock("k", async |lock| {
            let pid = process(lock.connection()).await;
            world.database.terminate(pid).await;
            lock.held_mut().probe().await.ok();
            std::future::pending::<Result<(), Error>>().await
        });
        let outcome = within(PATIENCE, "the body's end", body).await;
        assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
    });
}

/// Case 32: the server's own time limit, told as such; a pooler passes the server's last words on.
#[test]
fn an_idle_transaction_that_the_server_ends_is_a_loss() {
    both_ways(async |world| {
        let locks = world.locks();
        for end in ["probe", "commit"] {
            let mut guard = locks.acquire("k").await.unwrap();
            insert(&mut guard, 1).await;
            let limit = "set local idle_in_transaction_session_timeout = '50ms'";
            execute(guard.connection(), limit).await;
            sleep(Duration::from_millis(400)).await;
            let next = locks.try_acquire("k").await.unwrap();
            next.expect("it is free").release().await.unwrap();
            let error = match end {
                "probe" => guard.held_mut().probe().await.unwrap_err(),
                _ => guard.commit().await.unwrap_err(),
            };
            let cause = LossCause::TransactionTimedOut;
            assert!(
                matches!(&error, Error::Lost { cause: found, .. } if *found == cause),
                "{end}: {error:?}"
            );
        }
        world.has_work(&[]).await;
    });
}

/// The pooler's own limit is not the server's; what is left is a connection that was closed.
#[test]
fn an_idle_transaction_that_the_pooler_ends_is_a_loss() {
    pooled(&[("idle_transaction_timeout", "1")], async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        sleep(Duration::from_millis(2500)).await;
        let error = guard.held_mut().probe().await.unwrap_err();
        assert!(matches!(error, Error::Lost { .. }), "{error:?}");
        drop(guard);
        world.is_clean().await;
        world.has_work(&[]).await;
    });
}

/// Whoever waits outlasts connections that break under it; whoever tries is told.
#[test]
fn waiters_outlast_broken_connections() {
    both_ways(async |world| {
        let (one, other) = (world.locks(), world.locks());
        let mut holder = one.acquire("k").await.unwrap();
        let own = process(holder.connection()).await;
        let waiting = other.lock("k").within(PATIENCE);
        let waiter = tokio::spawn(async move { waiting.await?.release().await });
        for _ in 0..10 {
            sleep(Duration::from_millis(37)).await;
            let end = format!(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                 where datname = current_database() and pid not in ({own}, pg_backend_pid())"
            );
            let mut connection = world.database.connect().await;
            let ended = sqlx::raw_sql(AssertSqlSafe(end)).execute(&mut connection);
            ended.await.unwrap();
        }
        holder.commit().await.unwrap();
        let served = within(PATIENCE, "the waiter's turn", waiter).await;
        served.unwrap().unwrap();
        world.is_clean().await;
    });
}
