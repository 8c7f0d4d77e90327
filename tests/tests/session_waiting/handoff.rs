//! From one process to the next. A session of its own is all that makes a process one here; where
//! a real one matters, there is one.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use sqlock_tests::TestDatabase;
use tokio::time::Instant;

use crate::support::{
    PATIENCE, SessionLocks, SessionOptions, Times, fast_enough, ids_held, node, node_with,
    pid_of_holder, run, until_waiting, within,
};

/// With the poll at 20 s a hand-off takes milliseconds: the release wakes the waiter.
#[test]
fn a_release_wakes_the_waiter_of_another_process() {
    run(async || {
        let database = TestDatabase::create().await;
        let rarely = SessionOptions::new().poll_interval(Duration::from_secs(20));
        let one = node_with(&database, rarely.clone()).await;
        let two = node_with(&database, rarely).await;
        let mut times = Times::default();
        for round in 0..30 {
            let (holder, waiter) = if round % 2 == 0 {
                (&one, &two)
            } else {
                (&two, &one)
            };
            let held = holder.acquire("k").await.unwrap();
            let waiting = waiting(&database, waiter, "k").await;
            let handed_over = async {
                held.release().await.unwrap();
                within(PATIENCE, "the waiter's turn", waiting)
                    .await
                    .unwrap()
            };
            let guard = times.measure(handed_over).await.unwrap();
            guard.release().await.unwrap();
        }
        times.assert_at_most(Duration::from_millis(100), Duration::from_secs(5));
    });
}

/// So does a dropped guard, a writer's end to all its readers, and the last reader's to a writer.
#[test]
fn readers_and_writers_wake_each_other() {
    run(async || {
        let database = TestDatabase::create().await;
        let rarely = SessionOptions::new().poll_interval(Duration::from_secs(20));
        let one = node_with(&database, rarely.clone()).await;
        let two = node_with(&database, rarely).await;
        let mut times = Times::default();
        for _ in 0..10 {
            let writer = one.acquire("k").await.unwrap();
            let readers: Vec<_> = (0..3)
                .map(|_| tokio::spawn(two.lock("k").shared().acquire()))
                .collect();
            until_waiting(&database, 1).await;
            let handed_over = async {
                drop(writer);
                let mut guards = Vec::new();
                for reader in readers {
                    let guard = within(PATIENCE, "the readers' turn", reader).await;
                    guards.push(guard.unwrap().unwrap());
                }
                guards
            };
            let readers = times.measure(handed_over).await;

            let writer = waiting(&database, &one, "k").await;
            let handed_over = async {
                drop(readers);
                within(PATIENCE, "the writer's turn", writer).await.unwrap()
            };
            let guard = times.measure(handed_over).await.unwrap();
            guard.release().await.unwrap();
        }
        times.assert_at_most(Duration::from_millis(100), Duration::from_secs(5));
    });
}

/// The server ends the holder's session: nobody says so, and the next has the lock within a second
/// at the default options.
#[test]
fn the_next_has_the_lock_within_a_second_of_the_holders_end() {
    run(async || {
        let database = TestDatabase::create().await;
        fast_enough(Duration::from_secs(1), async || {
            let holder = node(&database).await;
            let held = holder.acquire("k").await.unwrap();
            let pid = pid_of_holder(&database).await;
            let next = node(&database).await;
            let waiting = waiting(&database, &next, "k").await;
            let started = Instant::now();
            database.terminate(pid).await;
            let guard = within(PATIENCE, "the next's turn", waiting).await.unwrap();
            let time = started.elapsed();
            assert!(held.check().is_err());
            guard.unwrap().release().await.unwrap();
            time
        })
        .await;
    });
}

/// The same of a process that is killed with -9.
#[test]
fn the_next_has_the_lock_within_a_second_of_the_holders_kill() {
    run(async || {
        let database = TestDatabase::create().await;
        fast_enough(Duration::from_secs(1), async || {
            let mut holder = Holder::start(&database.url());
            assert_eq!(ids_held(&database).await, [7]);
            let next = node(&database).await;
            let waiting = waiting(&database, &next, 7).await;
            let started = Instant::now();
            holder.0.kill().unwrap();
            let guard = within(PATIENCE, "the next's turn", waiting).await.unwrap();
            let time = started.elapsed();
            guard.unwrap().release().await.unwrap();
            time
        })
        .await;
    });
}

/// A task that waits for the key, by the server's word.
async fn waiting(
    database: &TestDatabase,
    locks: &SessionLocks,
    key: impl sqlock::IntoLockKey,
) -> tokio::task::JoinHandle<sqlock::Result<crate::support::Guard>> {
    let task = tokio::spawn(locks.lock(key).acquire());
    until_waiting(database, 1).await;
    task
}

/// A process that holds lock 7.
struct Holder(Child);

impl Holder {
    fn start(url: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hold-lock"))
            .args([url, "7"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // it may have been killed by its test
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
