//! Case 34: what a crowd of waiters costs the server.

use std::time::Duration;

use sqlock_tests::TestDatabase;
use sqlx::PgConnection;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::support::{
    PATIENCE, SessionLocks, SessionOptions, execute, join_all, node_with, run, until_waiting,
    within,
};

const TASKS: i64 = 1000;
/// Each is waited for by two tasks: that fits the budget of a server's default settings.
const KEYS: i64 = 500;
const SAMPLES: u32 = 100;
const POLL: Duration = Duration::from_millis(200);

/// A thousand tasks that wait pin no snapshot, so that vacuum goes on, add no connections, and cost
/// one statement a poll.
#[test]
fn a_thousand_waiting_tasks_cost_a_statement_a_poll() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut holder = database.connect().await;
        let all = format!("select pg_advisory_lock(k) from generate_series(1, {KEYS}) as k");
        execute(&mut holder, &all).await;
        let options = SessionOptions::new().poll_interval(POLL);
        let locks = node_with(&database, options).await;
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let lock = locks.lock(task % KEYS + 1);
            tasks.spawn(async move { lock.await.unwrap().release().await.unwrap() });
        }
        until_waiting(&database, usize::try_from(KEYS).unwrap()).await;

        let watching = async {
            let mut pinned = 0;
            for _ in 0..SAMPLES {
                let backends = database.backends().await;
                assert_eq!(backends.len(), 2, "{backends:?}");
                for backend in backends {
                    // a look at a lock has a snapshot for its milliseconds; a blocked one keeps it
                    pinned += u32::from(backend.pins_snapshot);
                    assert_ne!(backend.wait_event.as_deref(), Some("advisory"));
                }
                sleep(Duration::from_millis(30)).await;
            }
            assert!(pinned < SAMPLES / 4, "{pinned} of {SAMPLES} times");
        };
        let (pace, ()) = tokio::join!(pace_of_statements(&database, &locks), watching);
        // a poll comes after half to all of its interval
        let most = pace.over.as_secs_f64() / (POLL.as_secs_f64() / 2.0) + 2.0;
        assert!(pace.statements <= most, "{pace:?}, at most {most}");
        assert!(pace.statements >= 3.0, "there were no polls: {pace:?}");

        execute(&mut holder, "select pg_advisory_unlock_all()").await;
        within(PATIENCE, "everybody's turn", join_all(tasks)).await;
        assert_eq!(database.advisory_locks().await, []);
    });
}

#[derive(Debug)]
struct Pace {
    statements: f64,
    over: Duration,
}

/// Counts the statements of the waiting session. Outside of a transaction each is a commit.
async fn pace_of_statements(database: &TestDatabase, locks: &SessionLocks) -> Pace {
    let mut outside = database.server().connect().await;
    let (before, since) = report(&mut outside, database.name(), locks).await;
    sleep(Duration::from_secs(3)).await;
    let (after, until) = report(&mut outside, database.name(), locks).await;
    Pace {
        statements: f64::from(after - before),
        over: until - since,
    }
}

/// A session reports its commits at the end of a statement that reads a table, as `inspect` does.
async fn report(
    connection: &mut PgConnection,
    database: &str,
    locks: &SessionLocks,
) -> (i32, Instant) {
    let mut count = async || -> i32 {
        sqlx::query_scalar("select xact_commit::int from pg_stat_database where datname = $1")
            .bind(database)
            .fetch_one(&mut *connection)
            .await
            .unwrap()
    };
    let before = count().await;
    locks.inspect(1).await.unwrap();
    loop {
        let now = count().await;
        if now != before {
            return (now, Instant::now());
        }
        sleep(Duration::from_millis(5)).await;
    }
}
