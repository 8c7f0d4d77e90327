//! Nothing that waits for a lock of ours is part of a deadlock.

use std::time::Duration;

use sqlock::Error;
use sqlock_tests::TestDatabase;
use tokio::task::JoinSet;

use crate::support::{Guard, PATIENCE, ask, execute, join_all, node, run, until_waiting, within};

/// Case 33: an index is built concurrently while five tasks wait for a lock. The build waits for
/// every older snapshot, which a statement blocked in `pg_advisory_lock` has.
#[test]
fn an_index_is_built_concurrently_while_tasks_wait() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut migration = database.connect().await;
        execute(
            &mut migration,
            "create table jobs as select id from generate_series(1, 1000) as id",
        )
        .await;
        // the migration holds the lock for which the others wait
        let holder = node(&database).await;
        let guard = holder.acquire("migrate").await.unwrap();
        let mut waiters = JoinSet::new();
        for _ in 0..5 {
            let locks = node(&database).await;
            waiters.spawn(async move {
                let guard = locks.acquire("migrate").await.unwrap();
                guard.release().await.unwrap();
            });
        }
        until_waiting(&database, 5).await;

        let build = execute(&mut migration, "create index concurrently on jobs (id)");
        within(PATIENCE, "the index", build).await;

        until_waiting(&database, 5).await;
        let valid = "select indisvalid from pg_index where indrelid = 'jobs'::regclass";
        assert!(ask::<bool>(&mut migration, valid).await);
        guard.release().await.unwrap();
        within(PATIENCE, "the waiters' turn", join_all(waiters)).await;
        assert_eq!(deadlocks(&database).await, 0);
    });
}

/// Case 36: there is no upgrade. Two readers that both want to write run out of time, in one
/// process and in two, and the server breaks no deadlock.
#[test]
fn two_readers_that_want_to_write_time_out() {
    run(async || {
        let database = TestDatabase::create().await;
        let (one, two) = (node(&database).await, node(&database).await);
        for (first, second) in [(&one, &one), (&one, &two)] {
            let readers: [Guard; 2] = [
                first.lock("k").shared().acquire().await.unwrap(),
                second.lock("k").shared().acquire().await.unwrap(),
            ];
            // longer than the server's deadlock_timeout of a second
            let budget = Duration::from_millis(1500);
            let (a, b) = tokio::join!(
                first.acquire_within("k", budget),
                second.acquire_within("k", budget)
            );
            for answer in [a, b] {
                assert!(matches!(answer, Err(Error::Timeout { .. })), "{answer:?}");
            }
            for reader in readers {
                reader.release().await.unwrap();
            }
            let writer = within(PATIENCE, "a writer's turn", first.acquire("k")).await;
            writer.unwrap().release().await.unwrap();
        }
        assert_eq!(deadlocks(&database).await, 0);
    });
}

/// Deadlocks that the server has broken in this database.
async fn deadlocks(database: &TestDatabase) -> i64 {
    let count = "select deadlocks from pg_stat_database where datname = current_database()";
    ask(&mut database.connect().await, count).await
}
