//! The work that goes with a lock: there after `Ok`, and only then.

use sqlock::{Error, LossCause};
use sqlx::Connection as _;

use crate::{
    support::{PATIENCE, execute},
    world::{Guard, both_ways, fails, insert, process},
};

#[test]
fn work_and_lock_end_together() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        world.has_work(&[]).await;
        assert!(locks.try_acquire("k").await.unwrap().is_none());
        guard.commit().await.unwrap();
        world.has_work(&[1]).await;

        let mut guard = locks.try_acquire("k").await.unwrap().expect("it is free");
        insert(&mut guard, 2).await;
        guard.roll_back().await.unwrap();
        let mut guard = locks.try_acquire("k").await.unwrap().expect("it is free");
        insert(&mut guard, 3).await;
        drop(guard);
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 4).await;
        drop(guard);
        world.is_clean().await;
        world.has_work(&[1]).await;
    });
}

/// In generic code the normal end is `release`, and it commits.
#[test]
fn a_release_commits() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        guard.release().await.unwrap();
        world.has_work(&[1]).await;

        let erased = world.locks().erased();
        let guard = erased.acquire("k").await.unwrap();
        guard.release().await.unwrap();
        world.is_clean().await;
    });
}

#[test]
fn a_body_commits_and_its_error_rolls_back() {
    both_ways(async |world| {
        let locks = world.locks();
        let failing = async |lock: &mut Guard| {
            insert(lock, 1).await;
            anyhow::bail!("no")
        };
        let outcome: anyhow::Result<Option<()>> = locks.run_once("k", failing).await;
        assert_eq!(outcome.unwrap_err().to_string(), "no");
        let outcome: anyhow::Result<()> = locks.with_lock("k", failing).await;
        outcome.unwrap_err();
        world.has_work(&[]).await;

        let working = async |lock: &mut Guard| {
            insert(lock, 2).await;
            Ok::<_, Error>(7)
        };
        assert_eq!(locks.run_once("k", working).await.unwrap(), Some(7));
        world.has_work(&[2]).await;
        world.is_clean().await;
    });
}

/// Case 12: an error in the body frees the lock, at once, and the connection is of use again.
#[test]
fn a_statement_that_fails_frees_the_lock() {
    both_ways(async |world| {
        let locks = world.locks();
        let body = locks.with_lock("k", async |lock: &mut Guard| {
            sqlx::raw_sql("select 1/0")
                .execute(lock.connection())
                .await?;
            anyhow::Ok(())
        });
        let error = body.await.unwrap_err().downcast::<sqlx::Error>().unwrap();
        assert_eq!(error.as_database_error().unwrap().code().unwrap(), "22012");
        for _ in 0..8 {
            let guard = locks.try_acquire("k").await.unwrap().expect("it is free");
            guard.commit().await.unwrap();
        }
        world.is_clean().await;
    });
}

/// COMMIT of an aborted transaction answers ROLLBACK; that is not a success.
#[test]
fn an_aborted_transaction_is_not_committed() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        assert_eq!(fails(guard.connection(), "select 1/0").await, "22012");
        // the lock is free from then on; the server says so before it is
        let next = locks.acquire_within("k", PATIENCE).await.unwrap();
        let error = guard.commit().await.unwrap_err();
        assert!(matches!(error, Error::Aborted { .. }), "{error:?}");
        assert!(!error.is_retryable());
        next.release().await.unwrap();
        world.has_work(&[]).await;

        // to roll it back is all right
        let mut guard = locks.acquire("k").await.unwrap();
        fails(guard.connection(), "select 1/0").await;
        guard.roll_back().await.unwrap();
        world.is_clean().await;
    });
}

/// What the database checks at the end only, also where it fails in the way of our own check.
#[test]
fn a_commit_that_the_server_refuses_is_not_one() {
    both_ways(async |world| {
        let mut connection = world.database.connect().await;
        let triggers = "create function dividing() returns trigger language plpgsql as \
             $$ begin if new.n = 7 then perform 1/0; end if; return null; end $$; \
             create function conflicting() returns trigger language plpgsql as \
             $$ begin if new.n = 8 then raise exception using errcode = '40001'; end if; \
             return null; end $$; \
             create constraint trigger a after insert on work initially deferred \
             for each row execute function dividing(); \
             create constraint trigger b after insert on work initially deferred \
             for each row execute function conflicting();";
        execute(&mut connection, triggers).await;
        let locks = world.locks();
        for (values, code) in [("(1), (1)", "23505"), ("(7)", "22012"), ("(8)", "40001")] {
            let mut guard = locks.acquire("k").await.unwrap();
            let insert = format!("insert into work values {values}");
            execute(guard.connection(), &insert).await;
            let Error::Aborted { source, .. } = guard.commit().await.unwrap_err() else {
                panic!("{values} is aborted");
            };
            let source = source.downcast::<sqlx::Error>().unwrap();
            assert_eq!(source.as_database_error().unwrap().code().unwrap(), code);
            world.is_clean().await;
        }
        world.has_work(&[]).await;
    });
}

/// The user's own SQL ends the lock unseen, in every way that there is.
#[test]
fn a_transaction_that_other_sql_ended_is_a_loss() {
    both_ways(async |world| {
        let locks = world.locks();
        for sql in [
            "commit",
            "rollback",
            "commit; begin",
            "commit and chain",
            "rollback; begin",
            "rollback and chain",
            "commit; select 1",
        ] {
            for end in ["commit", "roll back", "probe", "drop"] {
                let mut guard = locks.acquire("k").await.unwrap();
                let lost = guard.lost();
                execute(guard.connection(), sql).await;
                let error = match end {
                    "commit" => guard.commit().await.unwrap_err(),
                    "roll back" => guard.roll_back().await.unwrap_err(),
                    "probe" => {
                        let error = guard.held_mut().probe().await.unwrap_err();
                        drop(guard);
                        error
                    }
                    _ => {
                        drop(guard);
                        world.is_clean().await;
                        continue;
                    }
                };
                let cause = LossCause::TransactionEnded;
                assert!(
                    matches!(&error, Error::Lost { cause: found, .. } if *found == cause),
                    "{sql}, {end}: {error:?}"
                );
                assert_eq!(lost.cause(), Some(cause), "{sql}, {end}");
                world.is_clean().await;
            }
        }
    });
}

/// Whether the work is there is not known then, and the error says so.
#[test]
fn a_connection_that_is_lost_at_the_commit_leaves_it_unknown() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        let pid = process(guard.connection()).await;
        world.database.terminate(pid).await;
        let error = guard.commit().await.unwrap_err();
        assert!(matches!(error, Error::CommitUnknown { .. }), "{error:?}");
        assert!(!error.is_retryable());
        world.is_clean().await;
        world.has_work(&[]).await;
    });
}

/// A server that dies between the commit and its answer: the work is there, and nobody was told.
#[test]
fn a_commit_whose_answer_is_lost_is_unknown() {
    both_ways(async |world| {
        let mut connection = world.database.connect().await;
        // ends its own session once the transaction is over: as the answer goes out
        let trigger = "create function slow() returns trigger language plpgsql as \
             $$ begin perform pg_sleep(0.5); return null; end $$; \
             create constraint trigger a after insert on work initially deferred \
             for each row execute function slow();";
        execute(&mut connection, trigger).await;
        let mut guard = world.locks().acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        let pid = process(guard.connection()).await;
        let (committed, ()) = tokio::join!(guard.commit(), async {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            world.database.terminate(pid).await;
        });
        let error = committed.unwrap_err();
        assert!(matches!(error, Error::CommitUnknown { .. }), "{error:?}");
        world.is_clean().await;
    });
}

/// A nested transaction of sqlx's is a savepoint.
#[test]
fn nested_transactions_are_savepoints() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        let mut inner = guard.connection().begin().await.unwrap();
        execute(&mut inner, "insert into work values (1)").await;
        inner.rollback().await.unwrap();
        let mut inner = guard.connection().begin().await.unwrap();
        execute(&mut inner, "insert into work values (2)").await;
        let mut innermost = inner.begin().await.unwrap();
        fails(&mut innermost, "select 1/0").await;
        drop(innermost);
        inner.commit().await.unwrap();
        let mut inner = guard.connection().begin().await.unwrap();
        execute(&mut inner, "insert into work values (3)").await;
        drop(inner);
        guard.held_mut().probe().await.unwrap();
        assert!(locks.try_acquire("k").await.unwrap().is_none());
        guard.commit().await.unwrap();
        world.has_work(&[2]).await;
        world.is_clean().await;
    });
}
