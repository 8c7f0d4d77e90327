//! Many names over one connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sqlock_tests::{TestDatabase, eventually};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::task::JoinSet;

use crate::support::{PATIENCE, execute, join_all, node, run};

/// 20 names, 1,000 operations, 64 tasks. Under its lock each operation reads a counter in the
/// database, and writes one more in a second statement: two at a time would lose a count.
#[test]
fn a_thousand_operations_on_twenty_names_share_one_connection() {
    const NAMES: usize = 20;
    const TASKS: usize = 64;
    const OPERATIONS: usize = 1000;
    run(async || {
        let database = TestDatabase::create().await;
        let pool = PgPoolOptions::new()
            .max_connections(8)
            .acquire_timeout(Duration::from_secs(30))
            .connect_with(database.options())
            .await
            .unwrap();
        execute(
            &mut pool.acquire().await.unwrap(),
            "create table counters as select id as name, 0::bigint as n \
             from generate_series(0, 19) as id",
        )
        .await;
        let locks = node(&database).await;
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let (locks, pool, next) = (locks.clone(), pool.clone(), Arc::clone(&next));
            tasks.spawn(async move {
                loop {
                    let operation = next.fetch_add(1, Ordering::Relaxed);
                    if operation >= OPERATIONS {
                        return;
                    }
                    let name = operation * 7 % NAMES;
                    let guard = locks.acquire(format!("counter {name}")).await.unwrap();
                    count_one(&pool, name).await;
                    guard.release().await.unwrap();
                }
            });
        }
        join_all(tasks).await;

        let counts: Vec<i64> = sqlx::query_scalar("select n from counters order by name")
            .fetch_all(&pool)
            .await
            .unwrap();
        assert_eq!(counts, [50; NAMES]);
        assert!(database.count_connections().await <= 1 + 8);
        pool.close().await;
        eventually(PATIENCE, async || database.count_connections().await == 1).await;
        assert_eq!(database.advisory_locks().await, []);
    });
}

async fn count_one(pool: &PgPool, name: usize) {
    let name = i32::try_from(name).unwrap();
    let n: i64 = sqlx::query_scalar("select n from counters where name = $1")
        .bind(name)
        .fetch_one(pool)
        .await
        .unwrap();
    sqlx::query("update counters set n = $1 where name = $2")
        .bind(n + 1)
        .bind(name)
        .execute(pool)
        .await
        .unwrap();
}
