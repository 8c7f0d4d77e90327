//! What the in-memory backend has beyond the conformance suite: order, the paused clock, faults.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use sqlock_core::{Error, Lock, Locks, LossCause, MemoryBackend, Wait};
use tokio::{
    task::{JoinHandle, yield_now},
    time::{Instant, advance, sleep, timeout},
};

const LONG: Duration = Duration::from_secs(3600);

fn backend() -> (MemoryBackend, Locks<MemoryBackend>) {
    let backend = MemoryBackend::new();
    (backend.clone(), Locks::new(backend))
}

/// Starts waiters one after the other, each of whom notes its name when it is served.
struct Line {
    backend: MemoryBackend,
    served: Arc<Mutex<Vec<&'static str>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Line {
    fn new(backend: &MemoryBackend) -> Self {
        Self {
            backend: backend.clone(),
            served: Arc::default(),
            tasks: Vec::new(),
        }
    }

    async fn join(&mut self, name: &'static str, lock: Lock<MemoryBackend>) {
        let served = Arc::clone(&self.served);
        let waiting = self.backend.waiting();
        self.tasks.push(tokio::spawn(async move {
            let guard = lock.await.unwrap();
            served.lock().unwrap().push(name);
            // those who share it come in beside this one
            sleep(Duration::from_millis(1)).await;
            guard.release().await.unwrap();
        }));
        while self.backend.waiting() == waiting {
            yield_now().await;
        }
    }

    async fn served(self) -> Vec<&'static str> {
        for task in self.tasks {
            task.await.unwrap();
        }
        let served = self.served.lock().unwrap();
        served.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_their_order() {
    let (backend, locks) = backend();
    let guard = locks.acquire("k").await.unwrap();
    let mut line = Line::new(&backend);
    for name in ["first", "second", "third", "fourth"] {
        line.join(name, locks.lock("k")).await;
    }
    guard.release().await.unwrap();
    assert_eq!(line.served().await, ["first", "second", "third", "fourth"]);
}

#[tokio::test(start_paused = true)]
async fn readers_stand_behind_a_writer_that_waits() {
    let (backend, locks) = backend();
    let reader = locks.lock("k").shared().await.unwrap();
    let mut line = Line::new(&backend);
    line.join("writer", locks.lock("k")).await;
    line.join("reader", locks.lock("k").shared()).await;
    line.join("another reader", locks.lock("k").shared()).await;
    assert!(
        locks
            .lock("k")
            .shared()
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    reader.release().await.unwrap();
    assert_eq!(line.served().await, ["writer", "reader", "another reader"]);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_gives_up_lets_readers_through() {
    let (backend, locks) = backend();
    let _reader = locks.lock("k").shared().await.unwrap();
    let writer = locks.lock("k").within(Duration::from_secs(1));
    let writer = tokio::spawn(async move { writer.await.is_ok() });
    while backend.waiting() == 0 {
        yield_now().await;
    }
    let second = locks.lock("k").shared();
    let second = tokio::spawn(async move { second.await.is_ok() });
    yield_now().await;
    assert_eq!(backend.waiting(), 2);
    assert!(!writer.await.unwrap());
    assert!(second.await.unwrap());
}

/// A try does not pass those who wait, although the key is free at that moment.
#[tokio::test(start_paused = true)]
async fn a_try_does_not_pass_those_who_wait() {
    let (backend, locks) = backend();
    let held = locks.acquire("held").await.unwrap();
    let mut line = Line::new(&backend);
    line.join("both", locks.lock_all(["held", "k"])).await;
    assert_eq!(backend.held(), 1, "nothing is held while waiting");
    assert!(locks.try_acquire("k").await.unwrap().is_none());
    line.join("later", locks.lock("k")).await;
    assert!(locks.try_acquire("another").await.unwrap().is_some());
    held.release().await.unwrap();
    assert_eq!(line.served().await, ["both", "later"]);
    assert!(locks.try_acquire("k").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_paused_clock_drives_timeouts() {
    let (backend, locks) = backend();
    let _guard = locks.acquire("k").await.unwrap();
    let started = Instant::now();
    let refused = locks.acquire_within("k", LONG).await;
    assert!(matches!(refused, Err(Error::Timeout { waited, .. }) if waited == LONG));
    assert_eq!(started.elapsed(), LONG);
    assert_eq!(backend.waiting(), 0);

    let forever = timeout(LONG * 24, locks.acquire_within("k", Wait::forever()));
    assert!(forever.await.is_err());
    assert_eq!(backend.waiting(), 0);
}

/// A grant that is there when the deadline passes is given, not dropped.
#[tokio::test(start_paused = true)]
async fn a_grant_at_the_deadline_is_a_grant() {
    let (backend, locks) = backend();
    let guard = locks.acquire("k").await.unwrap();
    let mut waiter = pin!(locks.acquire_within("k", Duration::from_secs(1)));
    let polled = poll_fn(|context| Poll::Ready(waiter.as_mut().poll(context))).await;
    assert!(polled.is_pending());
    guard.release().await.unwrap();
    assert_eq!((backend.held(), backend.waiting()), (1, 0));
    advance(Duration::from_secs(2)).await;
    drop(waiter.await.unwrap());
}

#[tokio::test]
async fn a_free_lock_is_had_on_an_empty_budget() {
    let (_, locks) = backend();
    let guard = locks.acquire_within("k", Duration::ZERO).await.unwrap();
    drop(guard);
    let past = Wait::until(Instant::now());
    assert!(locks.acquire_within("k", past).await.is_ok());
}

#[tokio::test]
async fn locks_can_be_lost() {
    let (backend, locks) = backend();
    let faults = backend.faults();
    assert_eq!(faults.lose("k", LossCause::Expired).unwrap(), 0);
    assert!(faults.lose("", LossCause::Expired).is_err());

    let readers = [
        locks.lock("k").shared().await.unwrap(),
        locks.lock_all(["k", "l"]).shared().await.unwrap(),
    ];
    let another = locks.acquire("another").await.unwrap();
    assert_eq!(faults.lose("k", LossCause::Expired).unwrap(), 2);
    for reader in readers {
        assert_eq!(reader.lost().cause(), Some(LossCause::Expired));
        reader.release().await.unwrap_err();
    }
    another.check().unwrap();
    assert_eq!(backend.held(), 1);
    assert!(
        locks
            .lock_all(["k", "l"])
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );

    let other = Locks::new(backend.another_node());
    let theirs = other.acquire("theirs").await.unwrap();
    assert_eq!(faults.lose_all(LossCause::ConnectionClosed), 1);
    another.check().unwrap_err();
    theirs.check().unwrap();
}

/// The loss is told before the next one has the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_is_told_before_the_next_grant() {
    let (backend, locks) = backend();
    for _ in 0..300 {
        let guard = locks.acquire("k").await.unwrap();
        let lost = guard.lost();
        let next = locks.lock("k");
        let next = tokio::spawn(async move {
            let next = next.await.unwrap();
            assert!(
                lost.cause().is_some(),
                "two hold the lock, and neither knows"
            );
            next.release().await.unwrap();
        });
        backend.faults().lose("k", LossCause::Removed).unwrap();
        next.await.unwrap();
        drop(guard);
    }
}

#[tokio::test]
async fn acquires_can_fail() {
    let (backend, locks) = backend();
    let acquires = backend.faults().acquires();
    acquires.fail_next();
    acquires.fail_next_with(Error::Standby);
    let first = locks.try_acquire("k").await;
    assert!(matches!(&first, Err(error @ Error::Unavailable { .. }) if error.is_retryable()));
    assert!(matches!(locks.acquire("k").await, Err(Error::Standby)));
    drop(locks.acquire("k").await.unwrap());

    acquires.fail_with(|| Error::LockBudget {
        in_use: 2,
        budget: 1,
        setting: "s",
    });
    for _ in 0..3 {
        let refused = locks.lock("k").shared().await;
        assert!(
            matches!(refused, Err(Error::LockBudget { .. })),
            "{refused:?}"
        );
    }
    let other = Locks::new(backend.another_node());
    drop(other.acquire("k").await.unwrap());
    acquires.heal();
    drop(locks.acquire("k").await.unwrap());
    acquires.fail();
    assert!(
        locks
            .acquire("k")
            .await
            .is_err_and(|error| error.is_retryable())
    );
    assert_eq!((backend.held(), backend.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn acquires_can_stall() {
    let (backend, locks) = backend();
    backend.faults().acquires().stall();
    let refused = locks.acquire_within("k", LONG).await;
    assert!(matches!(refused, Err(Error::Timeout { .. })), "{refused:?}");
    assert!(timeout(LONG, locks.try_acquire("k")).await.is_err());

    let waiting = locks.lock("k");
    let waiter = tokio::spawn(async move { waiting.await.is_ok() });
    sleep(LONG).await;
    assert!(!waiter.is_finished());
    backend.faults().acquires().heal();
    assert!(waiter.await.unwrap());
    assert_eq!(backend.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn releases_can_fail_and_stall() {
    let (backend, locks) = backend();
    let releases = backend.faults().releases();
    releases.fail_next();
    let failed = locks.acquire("k").await.unwrap().release().await;
    assert!(
        matches!(failed, Err(Error::Unavailable { .. })),
        "{failed:?}"
    );
    assert_eq!(backend.held(), 0, "a failed release frees the lock");

    releases.stall();
    let guard = locks.acquire("k").await.unwrap();
    assert!(timeout(LONG, guard.release()).await.is_err());
    assert_eq!(backend.held(), 0, "so does one that is given up");
    drop(locks.acquire("k").await.unwrap());
    assert_eq!(backend.held(), 0, "and a drop does not stall");

    let release = tokio::spawn(locks.acquire("k").await.unwrap().release());
    sleep(LONG).await;
    assert_eq!(backend.held(), 1);
    releases.heal();
    release.await.unwrap().unwrap();

    // a loss that comes while the release stalls is told
    releases.stall();
    let release = tokio::spawn(locks.acquire("k").await.unwrap().release());
    yield_now().await;
    backend.faults().lose("k", LossCause::Unresponsive).unwrap();
    releases.heal();
    assert!(matches!(release.await.unwrap(), Err(Error::Lost { .. })));
}

/// What stalls is let go of by the shutdown.
#[tokio::test(start_paused = true)]
async fn shutdown_ends_what_stalls() {
    let (backend, locks) = backend();
    let guard = locks.acquire("k").await.unwrap();
    backend.faults().acquires().stall();
    backend.faults().releases().stall();
    let acquire = tokio::spawn(locks.lock("another").into_future());
    let release = tokio::spawn(guard.release());
    yield_now().await;
    locks.shutdown().await.unwrap();
    assert!(matches!(
        acquire.await.unwrap(),
        Err(Error::ShutDown { .. })
    ));
    assert!(matches!(release.await.unwrap(), Err(Error::Lost { .. })));
    // of this node alone
    let other = Locks::new(backend.another_node());
    assert!(other.try_acquire("k").await.unwrap().is_some());
}

#[tokio::test]
async fn holders_are_shown_with_their_labels() {
    let (_, locks) = backend();
    let guard = locks.lock("k").label("nightly").shared().await.unwrap();
    let holders = locks.inspect("k").await.unwrap();
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0].label.as_deref(), Some("nightly"));
    assert_eq!(holders[0].pid, Some(i64::from(std::process::id())));
    assert!(holders[0].since.is_some());
    assert!(holders[0].to_string().starts_with("nightly (pid "));
    guard.release().await.unwrap();
}

/// Ten thousand guards, and as many drops.
#[tokio::test]
async fn many_locks() {
    let (backend, locks) = backend();
    let mut guards = Vec::new();
    for n in 0..10_000_i64 {
        guards.push(locks.try_acquire(n).await.unwrap().expect("it is free"));
    }
    assert_eq!(backend.held(), 10_000);
    drop(guards);
    assert_eq!(backend.held(), 0);
}
