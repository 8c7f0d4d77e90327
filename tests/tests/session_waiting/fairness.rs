//! A busy process does not starve another.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use sqlock_tests::TestDatabase;
use tokio::{task::JoinSet, time::sleep};

use crate::support::{SessionLocks, Times, join_all, node, run};

const TRIES: usize = 20;

/// Beside a process whose eight tasks always queue for the key, a waiter of another process is
/// served within 100 ms.
#[test]
fn a_remote_waiter_is_served_beside_a_steady_local_queue() {
    run(async || {
        let database = TestDatabase::create().await;
        let busy = Busy::start(node(&database).await, 8, |locks: SessionLocks| async move {
            let guard = locks.acquire("k").await.unwrap();
            sleep(Duration::from_millis(1)).await;
            guard.release().await.unwrap();
        });
        let remote = node(&database).await;
        let mut times = Times::default();
        for _ in 0..TRIES {
            let guard = times.measure(remote.acquire("k")).await.unwrap();
            guard.release().await.unwrap();
            sleep(Duration::from_millis(20)).await;
        }
        let turns = busy.end().await;
        assert!(turns > 50, "the process was not busy: {turns} turns");
        times.assert_at_most(Duration::from_millis(100), Duration::from_secs(2));
    });
}

/// The other way: the queue of a process goes on beside a remote one that is as busy.
#[test]
fn two_busy_processes_share() {
    run(async || {
        let database = TestDatabase::create().await;
        let turn = |locks: SessionLocks| async move {
            let guard = locks.acquire("k").await.unwrap();
            sleep(Duration::from_millis(1)).await;
            guard.release().await.unwrap();
        };
        let one = Busy::start(node(&database).await, 8, turn);
        let two = Busy::start(node(&database).await, 1, turn);
        sleep(Duration::from_secs(3)).await;
        let (one, two) = (one.end().await, two.end().await);
        assert!(one >= 30 && two >= 30, "{one} turns beside {two}");
    });
}

/// Readers of another process overlap without a gap; a writer gets in within 200 ms.
#[test]
fn a_writer_is_served_among_a_steady_stream_of_readers() {
    among_readers(1);
}

/// The same where every reader is a process.
#[test]
fn a_writer_is_served_among_readers_of_several_processes() {
    among_readers(3);
}

fn among_readers(processes: usize) {
    run(async || {
        let database = TestDatabase::create().await;
        let mut readers = Vec::new();
        for _ in 0..processes {
            let tasks = 3 / processes;
            readers.push(Busy::start(node(&database).await, tasks, read));
        }
        let writer = node(&database).await;
        let mut times = Times::default();
        for _ in 0..TRIES {
            // so long that the readers, whom the last writer brought into step, are out of it
            sleep(Duration::from_millis(170)).await;
            let guard = times.measure(writer.acquire("k")).await.unwrap();
            guard.release().await.unwrap();
        }
        let mut turns = 0;
        for busy in readers {
            turns += busy.end().await;
        }
        assert!(turns > 60, "there were few readers: {turns} turns");
        times.assert_at_most(Duration::from_millis(200), Duration::from_secs(2));
    });
}

async fn read(locks: SessionLocks) {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let guard = locks.lock("k").shared().acquire().await.unwrap();
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    sleep(Duration::from_millis(35 + u64::from(turn * 17 % 31))).await;
    guard.release().await.unwrap();
    sleep(Duration::from_millis(5)).await;
}

/// Tasks that do the same again and again until they are told to end.
struct Busy {
    tasks: JoinSet<()>,
    over: Arc<AtomicBool>,
    turns: Arc<AtomicU32>,
}

impl Busy {
    fn start<F>(
        locks: SessionLocks,
        tasks: usize,
        turn: impl Fn(SessionLocks) -> F + Clone + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send,
    {
        let mut busy = Self {
            tasks: JoinSet::new(),
            over: Arc::default(),
            turns: Arc::default(),
        };
        for _ in 0..tasks {
            let (locks, turn) = (locks.clone(), turn.clone());
            let (over, turns) = (Arc::clone(&busy.over), Arc::clone(&busy.turns));
            busy.tasks.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    turn(locks.clone()).await;
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        busy
    }

    async fn end(self) -> u32 {
        self.over.store(true, Ordering::Relaxed);
        join_all(self.tasks).await;
        self.turns.load(Ordering::Relaxed)
    }
}
