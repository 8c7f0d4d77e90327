//! Budgets and deadlines, with a paused clock.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod fake;

use std::time::Duration;

use fake::Fake;
use sqlock_core::{Deadline, Error, LockKey, Locks, MemoryBackend, Wait};
use tokio::time::{Instant, advance, sleep};

const BUDGET: Duration = Duration::from_secs(5);

/// The deadline that a backend is given.
async fn deadline(wait: impl Into<Wait>) -> Deadline {
    let fake = Fake::default();
    let locks = Locks::new(fake.clone());
    drop(locks.acquire_within("k", wait).await.unwrap());
    fake.last_request().deadline().expect("a deadline")
}

#[tokio::test(start_paused = true)]
async fn a_budget_runs_from_the_call() {
    let start = Instant::now();
    let deadline = deadline(BUDGET).await;
    assert_eq!(deadline.instant(), Some(start + BUDGET));
    assert_eq!(deadline.remaining(), Some(BUDGET));
    advance(BUDGET - Duration::from_millis(1)).await;
    assert!(!deadline.has_passed());
    advance(Duration::from_millis(1)).await;
    assert!(deadline.has_passed());
    advance(BUDGET).await;
    assert_eq!(deadline.remaining(), Some(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn instants_and_endless_budgets() {
    let at = Instant::now() + BUDGET;
    assert_eq!(deadline(Wait::until(at)).await.instant(), Some(at));
    assert_eq!(
        deadline(Wait::until(at.into_std())).await.instant(),
        Some(at)
    );
    for endless in [Wait::forever(), Wait::at_most(Duration::MAX)] {
        let deadline = deadline(endless).await;
        assert_eq!((deadline.instant(), deadline.remaining()), (None, None));
        assert!(!deadline.has_passed());
    }
    let past = deadline(Wait::until(Instant::now())).await;
    assert!(past.has_passed());
}

#[tokio::test(start_paused = true)]
async fn bound_gives_what_comes_in_time() {
    let deadline = deadline(BUDGET).await;
    assert_eq!(deadline.bound(sleep(BUDGET / 2)).await, Some(()));
    assert_eq!(deadline.bound(sleep(BUDGET)).await, None);
    assert!(deadline.has_passed());
    // what is there already is taken, late as it is
    assert_eq!(deadline.bound(async { 7 }).await, Some(7));
}

/// A lock that is named early and taken late has its whole budget.
#[tokio::test(start_paused = true)]
async fn the_budget_of_a_named_lock_starts_with_the_verb() {
    let locks = Locks::builder(MemoryBackend::new()).within(BUDGET).build();
    let _guard = locks.acquire("k").await.unwrap();
    let lock = locks.lock("k");
    advance(BUDGET * 3).await;
    let started = Instant::now();
    match lock.await {
        Err(Error::Timeout { key, waited }) => {
            assert_eq!(key.name(), Some("k"));
            assert_eq!((waited, started.elapsed()), (BUDGET, BUDGET));
        }
        other => panic!("{other:?}"),
    }
}

/// A try has no deadline, whatever the defaults say.
#[tokio::test]
async fn a_try_has_no_deadline() {
    let fake = Fake::default();
    let locks = Locks::builder(fake.clone()).within(BUDGET).build();
    drop(locks.try_acquire("k").await.unwrap());
    assert_eq!(fake.last_request().deadline(), None);
    locks
        .run_once("k", async |_| Ok::<_, Error>(()))
        .await
        .unwrap();
    assert_eq!(fake.last_request().deadline(), None);
}

/// A lock's options override those of `Locks`.
#[tokio::test(start_paused = true)]
async fn options_reach_the_backend() {
    let fake = Fake::default();
    let locks = Locks::builder(fake.clone())
        .label("nightly")
        .within(BUDGET)
        .build();
    drop(locks.acquire("k").await.unwrap());
    assert_eq!(fake.last_request().label(), Some("nightly"));
    let lock = locks
        .lock_all(["b", "a", "b"])
        .label("by hand")
        .within(Duration::ZERO);
    drop(lock.clone().await.unwrap());
    let request = fake.last_request();
    assert_eq!(request.label(), Some("by hand"));
    assert_eq!(
        request.deadline().unwrap().remaining(),
        Some(Duration::ZERO)
    );
    let ids: Vec<_> = request.keys().iter().map(LockKey::id).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.is_sorted());
    assert_eq!(request.first_key().id(), ids[0]);
}
