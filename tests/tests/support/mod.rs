//! What the tests of the session backend on a real server have in common.

#![allow(dead_code, reason = "each test binary takes what it needs")]

mod decoys;

use std::time::Duration;

use sqlock::{LockGuard, Locks, RESERVED_PAIR_CLASSES, SessionBackend, session::SessionHeld};
use sqlock_tests::{AdvisoryLock, TestDatabase, eventually};
use sqlx::{AssertSqlSafe, Decode, PgConnection, Postgres, Type};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

#[allow(unused_imports, reason = "each test binary takes what it needs")]
pub(crate) use decoys::put_decoys_first;
pub(crate) use sqlock::session::SessionOptions;

/// Nothing that comes about by itself takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Only what hangs takes longer, also where the machine is busy.
const TIME_LIMIT: Duration = Duration::from_secs(150);

pub(crate) type SessionLocks = Locks<SessionBackend>;
pub(crate) type Guard = LockGuard<SessionHeld>;

/// Runs a test on a runtime of its own. One that hangs fails.
pub(crate) fn run(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        timeout(TIME_LIMIT, test())
            .await
            .expect("the test does not hang");
    });
}

/// What another process would have: a session of its own, with the default options.
pub(crate) async fn node(database: &TestDatabase) -> SessionLocks {
    node_with(database, SessionOptions::new()).await
}

pub(crate) async fn node_with(database: &TestDatabase, options: SessionOptions) -> SessionLocks {
    let backend = options.connect(&database.url()).await;
    Locks::new(backend.expect("a session"))
}

/// The server process of the only lock that is held in the database.
pub(crate) async fn pid_of_holder(database: &TestDatabase) -> i32 {
    let locks = keys_held(database).await;
    assert_eq!(locks.len(), 1, "{locks:?}");
    locks[0].pid
}

/// The advisory locks that are held in the database, without those of waiting.
pub(crate) async fn keys_held(database: &TestDatabase) -> Vec<AdvisoryLock> {
    let mut locks = database.advisory_locks().await;
    locks.retain(|lock| lock.granted && !is_of_waiting(lock));
    locks
}

/// The ids among [`keys_held`].
pub(crate) async fn ids_held(database: &TestDatabase) -> Vec<i64> {
    let locks = keys_held(database).await;
    locks.iter().filter_map(AdvisoryLock::id).collect()
}

/// Until so many sessions and keys are waited for in our way, by the server's word.
pub(crate) async fn until_waiting(database: &TestDatabase, expected: usize) {
    eventually(PATIENCE, async || {
        let locks = database.advisory_locks().await;
        let slot = *RESERVED_PAIR_CLASSES.start();
        let slots = locks
            .iter()
            .filter(|lock| lock.objsubid == 2 && lock.classid.cast_signed() == slot);
        slots.count() >= expected
    })
    .await;
}

pub(crate) fn is_of_waiting(lock: &AdvisoryLock) -> bool {
    lock.objsubid == 2 && RESERVED_PAIR_CLASSES.contains(&lock.classid.cast_signed())
}

/// What a statement without parameters gives: one value.
pub(crate) async fn ask<T>(connection: &mut PgConnection, statement: &str) -> T
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin,
{
    sqlx::query_scalar(AssertSqlSafe(statement))
        .fetch_one(connection)
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"))
}

/// Statements whose results are of no interest.
pub(crate) async fn execute(connection: &mut PgConnection, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(connection)
        .await
        .unwrap_or_else(|error| panic!("{statements}: {error}"));
}

/// Waits for all tasks; panics where one of them did.
pub(crate) async fn join_all<T: 'static>(tasks: JoinSet<T>) -> Vec<T> {
    tasks.join_all().await
}

pub(crate) async fn within<F: Future>(limit: Duration, what: &str, future: F) -> F::Output {
    match timeout(limit, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: nothing after {limit:?}"),
    }
}

/// Does `attempt`, which gives how long something took, up to three times, until it was fast
/// enough: the machine may be busy with something else, and a real fault is slow each time.
pub(crate) async fn fast_enough(limit: Duration, mut attempt: impl AsyncFnMut() -> Duration) {
    let mut times = Vec::new();
    for _ in 0..3 {
        let time = attempt().await;
        times.push(time);
        if time <= limit {
            return;
        }
    }
    panic!("{times:?} should be at most {limit:?}");
}

/// Times of something that was done many times.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) async fn measure<F: Future>(&mut self, work: F) -> F::Output {
        let started = Instant::now();
        let output = work.await;
        self.0.push(started.elapsed());
        output
    }

    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(crate) fn median(&self) -> Duration {
        let mut times = self.0.clone();
        times.sort_unstable();
        times[times.len() / 2]
    }

    pub(crate) fn max(&self) -> Duration {
        self.0.iter().copied().max().unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn assert_at_most(&self, median: Duration, max: Duration) {
        let is_fast = self.median() <= median && self.max() <= max;
        assert!(
            is_fast,
            "median {:?} (at most {median:?}), longest {:?} (at most {max:?}): {:?}",
            self.median(),
            self.max(),
            self.0
        );
    }
}
