//! What is drawn, and what becomes of the lock where nothing is.

use std::time::Duration;

use sqlock::{Error, FencingToken, Locks, XactBackend, session::Fencing, xact::XactOptions};
use sqlock_tests::{TestDatabase, eventually};
use sqlx::postgres::PgPoolOptions;
use tokio::task::JoinSet;

use crate::{
    kinds::{Kind, Row, Sequence},
    schema::fenced,
    support::{PATIENCE, ask, execute, join_all, keys_held, node_with, run},
};

fn transactions(database: &TestDatabase) -> Locks<XactBackend> {
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .connect_lazy_with(database.options());
    Locks::new(XactOptions::new().fencing(Fencing::new()).with_pool(pool))
}

async fn with<K: Kind>() -> TestDatabase {
    let database = TestDatabase::create().await;
    K::make(&database).await;
    database
}

/// Many tasks at once, whose grants share statements: each has a token of its own.
#[test]
fn every_grant_of_a_statement_has_its_own() {
    async fn tokens(database: TestDatabase) {
        let locks = node_with(&database, fenced()).await;
        let mut last = FencingToken::new(0);
        for _ in 0..3 {
            let mut tasks = JoinSet::new();
            for key in 0..200_i64 {
                let locks = locks.clone();
                tasks.spawn(async move { locks.acquire(key).await.unwrap().token().unwrap() });
            }
            let mut tokens = join_all(tasks).await;
            tokens.sort_unstable();
            assert!(
                tokens.windows(2).all(|pair| pair[0] < pair[1]),
                "{tokens:?}"
            );
            assert!(tokens[0] > last);
            last = tokens[199];
        }
    }
    run(async || {
        tokens(with::<Sequence>().await).await;
        tokens(with::<Row>().await).await;
    });
}

/// Tasks of one process pass a lock on among themselves; each has a token of its own.
#[test]
fn those_who_pass_a_lock_on_have_their_own() {
    run(async || {
        let database = with::<Sequence>().await;
        let locks = node_with(&database, fenced()).await;
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let locks = locks.clone();
            tasks.spawn(async move {
                let mut tokens = Vec::new();
                for _ in 0..25 {
                    let guard = locks.acquire("job").await.unwrap();
                    tokens.push(guard.token().unwrap());
                    guard.release().await.unwrap();
                }
                tokens
            });
        }
        let all = join_all(tasks).await;
        // each task waited for its lock, so that its own rise
        assert!(all.iter().all(|tokens| tokens.is_sorted()));
        let mut tokens: Vec<_> = all.into_iter().flatten().collect();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), 200);
    });
}

/// Readers come after the writers before them, and before those after.
#[test]
fn readers_are_between_writers() {
    async fn check<B>(locks: Locks<B>)
    where
        B: sqlock::SharedBackend,
    {
        let writer = locks.acquire("job").await.unwrap();
        let before = writer.token().unwrap();
        writer.release().await.unwrap();
        let wait = Duration::from_secs(10);
        let one = locks.lock("job").shared().within(wait).await.unwrap();
        let other = locks.lock("job").shared().within(wait).await.unwrap();
        let highest = one.token().unwrap().max(other.token().unwrap());
        assert!(one.token().unwrap() > before && other.token().unwrap() > before);
        one.release().await.unwrap();
        other.release().await.unwrap();
        let writer = locks.acquire("job").await.unwrap();
        assert!(writer.token().unwrap() > highest);
    }
    run(async || {
        for database in [with::<Sequence>().await, with::<Row>().await] {
            check(node_with(&database, fenced()).await).await;
            check(transactions(&database)).await;
        }
    });
}

/// The session's lock and the transaction's are one lock, and its tokens are of one order.
#[test]
fn both_backends_share_their_tokens() {
    run(async || {
        for database in [with::<Sequence>().await, with::<Row>().await] {
            let session = node_with(&database, fenced()).await;
            let xact = transactions(&database);
            let mut last = FencingToken::new(0);
            for _ in 0..5 {
                let guard = session.acquire("job").await.unwrap();
                assert!(guard.token().unwrap() > last);
                last = guard.token().unwrap();
                guard.release().await.unwrap();
                let guard = xact.acquire("job").await.unwrap();
                assert!(guard.token().unwrap() > last);
                last = guard.token().unwrap();
                guard.commit().await.unwrap();
            }
        }
    });
}

/// What was done outside with a token is not undone with the transaction.
#[test]
fn a_roll_back_does_not_give_a_token_again() {
    run(async || {
        for database in [with::<Sequence>().await, with::<Row>().await] {
            let locks = transactions(&database);
            let mut last = FencingToken::new(0);
            for round in 0..6 {
                let mut guard = locks.acquire("job").await.unwrap();
                assert!(guard.token().unwrap() > last);
                last = guard.token().unwrap();
                match round % 3 {
                    0 => guard.roll_back().await.unwrap(),
                    1 => drop(guard),
                    _ => {
                        let failed = sqlx::raw_sql("select 1/0").execute(guard.connection());
                        failed.await.unwrap_err();
                    }
                }
            }
        }
    });
}

/// No WAL, and no transaction id, which would hold vacuum back.
#[test]
fn a_sequences_tokens_write_nothing() {
    run(async || {
        let database = with::<Sequence>().await;
        let session = node_with(&database, fenced()).await;
        let xact = transactions(&database);
        xact.acquire("warm").await.unwrap().commit().await.unwrap();
        let mut guard = xact.acquire("job").await.unwrap();
        let xid: Option<String> =
            sqlx::query_scalar("select pg_current_xact_id_if_assigned()::text")
                .fetch_one(guard.connection())
                .await
                .unwrap();
        assert_eq!(xid, None);
        guard.commit().await.unwrap();
        let mut connection = database.connect().await;
        let next_xid = "select pg_snapshot_xmax(pg_current_snapshot())::text";
        // others write to the server that all tests share: in one of a few rounds nobody does
        let mut quiet = false;
        for _ in 0..20 {
            let before: String = ask(&mut connection, next_xid).await;
            session
                .acquire("job")
                .await
                .unwrap()
                .release()
                .await
                .unwrap();
            let after: String = ask(&mut connection, next_xid).await;
            quiet |= before == after;
        }
        assert!(quiet, "every draw took a transaction id");
    });
}

/// The tables are dropped under a session that holds locks: who asks is told, who holds goes on.
#[test]
fn tables_that_vanish_cost_nobody_a_lock() {
    async fn check(database: TestDatabase) {
        let locks = node_with(&database, fenced()).await;
        let kept = locks.acquire("kept").await.unwrap();
        execute(
            &mut database.connect().await,
            "alter table sqlock_fencing rename to gone;
             alter table if exists sqlock_fencing_now rename to gone_too",
        )
        .await;
        for _ in 0..20 {
            let error = locks.try_acquire("job").await.unwrap_err();
            assert!(matches!(error, Error::Fencing { .. }), "{error:?}");
        }
        kept.lost().check().unwrap();
        eventually(PATIENCE, async || keys_held(&database).await.len() == 1).await;
        kept.release().await.unwrap();
        assert_eq!(keys_held(&database).await, []);
        execute(
            &mut database.connect().await,
            "alter table gone rename to sqlock_fencing;
             alter table if exists gone_too rename to sqlock_fencing_now",
        )
        .await;
        assert!(locks.acquire("job").await.unwrap().token().is_some());
    }
    run(async || {
        check(with::<Sequence>().await).await;
        check(with::<Row>().await).await;
    });
}

/// The block that one durable write covers ends while sessions draw.
#[test]
fn a_block_that_is_used_up_is_followed_by_another() {
    run(async || {
        let database = with::<Sequence>().await;
        let session = node_with(&database, fenced()).await;
        let xact = transactions(&database);
        let mut last = FencingToken::new(0);
        let mut connection = database.connect().await;
        for _ in 0..3 {
            execute(
                &mut connection,
                "select setval('sqlock_fencing_seq', up_to - base - 3) from sqlock_fencing_now",
            )
            .await;
            for _ in 0..4 {
                let guard = session.acquire("job").await.unwrap();
                assert!(guard.token().unwrap() > last);
                last = guard.token().unwrap();
                guard.release().await.unwrap();
                let guard = xact.acquire("job").await.unwrap();
                assert!(guard.token().unwrap() > last);
                last = guard.token().unwrap();
                guard.commit().await.unwrap();
            }
            let covered = "select reserved from sqlock_fencing";
            assert!(ask::<i64>(&mut connection, covered).await >= last.get());
        }
    });
}
