//! Several locks in one request.

use std::time::Duration;

use sqlock::{LockBackend, Locks, SessionBackend, XactBackend};
use sqlock_tests::{TestDatabase, eventually};
use sqlx::postgres::PgPoolOptions;
use tokio::time::timeout;

use crate::{
    support::{PATIENCE, ask, execute, run},
    tools::{database, node},
};

const TIMES: i64 = 20;

/// Fifty locks take as many transactions as one does, and not fifty times as many.
#[test]
fn several_keys_are_taken_in_one_transaction() {
    run(async || {
        let database = database().await;
        count(&database, "ttl", node(&database)).await;
        let session = SessionBackend::connect(&database.url()).await.unwrap();
        count(&database, "session", Locks::new(session)).await;
        let pool = PgPoolOptions::new().connect_lazy_with(database.options());
        count(&database, "xact", Locks::new(XactBackend::new(pool))).await;
    });
}

async fn count<B: LockBackend>(database: &TestDatabase, name: &str, locks: Locks<B>) {
    let names: Vec<String> = (0..50).map(|n| format!("name-{n}")).collect();
    let before = transactions(database).await;
    for _ in 0..TIMES {
        let guard = locks.acquire_all(&names).await.unwrap();
        guard.release().await.unwrap();
    }
    // statistics arrive with a later transaction
    eventually(PATIENCE * 2, async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        locks
            .acquire("another")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        transactions(database).await - before >= TIMES
    })
    .await;
    let done = transactions(database).await - before;
    println!("{name}: {done} transactions");
    assert!(done < TIMES * 50 / 2, "{name}: {done} transactions");
}

async fn transactions(database: &TestDatabase) -> i64 {
    let statement = format!(
        "select xact_commit + xact_rollback from pg_stat_database where datname = '{}'",
        database.name()
    );
    ask(&mut database.server().connect().await, &statement).await
}

/// The loss of one lease is the loss of all that one guard holds, and the others are given back.
#[test]
fn the_loss_of_one_key_is_the_loss_of_all() {
    run(async || {
        let database = database().await;
        let (one, other) = (node(&database), node(&database));
        let guard = one.acquire_all(["a", "b", "c"]).await.unwrap();
        let mut connection = database.connect().await;
        execute(
            &mut connection,
            "update sqlock_leases set owner = null, expires_at = null where name = 'b'",
        )
        .await;
        timeout(PATIENCE, guard.lost()).await.unwrap();
        assert!(!guard.is_valid());
        let taken = other.lock_all(["a", "b", "c"]).within(PATIENCE).await;
        taken.unwrap().release().await.unwrap();
        assert!(guard.release().await.is_err());
    });
}
