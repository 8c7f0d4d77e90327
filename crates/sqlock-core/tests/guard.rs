//! When a guard ends its lock, and how often.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod fake;

use std::{future::Future, pin::pin, task::Poll};

use fake::{Fake, FakeHeld};
use sqlock_core::{Error, LockGuard, Locks};

async fn guard(fake: &Fake) -> LockGuard<FakeHeld> {
    Locks::new(fake.clone()).acquire("k").await.unwrap()
}

#[tokio::test]
async fn a_drop_abandons_once() {
    let fake = Fake::default();
    drop(guard(&fake).await);
    assert_eq!(fake.log(), ["abandon"]);
}

#[tokio::test]
async fn a_release_that_succeeds_disarms() {
    let fake = Fake::default();
    guard(&fake).await.release().await.unwrap();
    assert_eq!(fake.log(), ["release begins", "release ends"]);
    guard(&fake).await.commit().await.unwrap();
    assert_eq!(fake.log(), ["release begins", "release ends"]);
    guard(&fake).await.roll_back().await.unwrap();
    assert_eq!(fake.log(), ["roll back"]);
}

#[tokio::test]
async fn a_release_that_fails_stays_armed() {
    let fake = Fake::default();
    fake.fail_releases();
    let error = guard(&fake).await.release().await.unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(fake.log(), ["release begins", "abandon"]);
}

#[tokio::test]
async fn a_release_that_is_never_polled_abandons() {
    let fake = Fake::default();
    drop(guard(&fake).await.release());
    assert_eq!(fake.log(), ["abandon"]);
    drop(guard(&fake).await.commit());
    assert_eq!(fake.log(), ["abandon"]);
    drop(guard(&fake).await.roll_back());
    assert_eq!(fake.log(), ["abandon"]);
}

#[tokio::test]
async fn a_release_that_is_dropped_midway_abandons() {
    let fake = Fake::default();
    {
        let mut release = pin!(guard(&fake).await.release());
        let polled = std::future::poll_fn(|context| Poll::Ready(release.as_mut().poll(context)));
        assert!(polled.await.is_pending());
        assert_eq!(fake.log(), ["release begins"]);
    }
    assert_eq!(fake.log(), ["abandon"]);
}

#[tokio::test]
async fn a_panic_abandons() {
    let fake = Fake::default();
    let guard = guard(&fake).await;
    let task = tokio::spawn(async move {
        let _guard = guard;
        std::panic::resume_unwind(Box::new("the work panics"));
    });
    assert!(task.await.is_err());
    assert_eq!(fake.log(), ["abandon"]);
}

/// A guard within a guard ends once, by the outer one's rules.
#[tokio::test]
async fn an_erased_guard_ends_once() {
    let fake = Fake::default();
    let locks = Locks::new(fake.clone()).erased();
    drop(locks.acquire("k").await.unwrap());
    assert_eq!(fake.log(), ["abandon"]);
    locks.acquire("k").await.unwrap().release().await.unwrap();
    assert_eq!(fake.log(), ["release begins", "release ends"]);
    locks.acquire("k").await.unwrap().roll_back().await.unwrap();
    assert_eq!(fake.log(), ["roll back"]);
    drop(locks.acquire("k").await.unwrap().release());
    assert_eq!(fake.log(), ["abandon"]);
    locks.shutdown().await.unwrap();
    assert_eq!(fake.log(), ["shutdown"]);
    fake.fail_releases();
    assert!(locks.acquire("k").await.unwrap().release().await.is_err());
    assert_eq!(fake.log(), ["release begins", "abandon"]);
}

/// `Ok` commits, `Err` rolls back; a failed commit is the error of the call.
#[tokio::test]
async fn bodies_commit_or_roll_back() {
    let fake = Fake::default();
    let locks = Locks::new(fake.clone());
    let done = locks.with_lock("k", async |lock| {
        *lock.connection() += 1;
        Ok::<_, Error>(*lock.connection())
    });
    assert_eq!(done.await.unwrap(), 1);
    assert_eq!(fake.log(), ["release begins", "release ends"]);

    let failed = locks.run_once("k", async |_| Err::<(), _>(Error::Standby));
    assert!(matches!(failed.await, Err(Error::Standby)));
    assert_eq!(fake.log(), ["roll back"]);

    fake.fail_releases();
    let failed = locks.run_once("k", async |_| Ok::<_, Error>(7)).await;
    assert!(
        matches!(failed, Err(Error::Unavailable { .. })),
        "{failed:?}"
    );
    assert_eq!(fake.log(), ["release begins", "abandon"]);
}

/// Without a backend's word, a guard of a backend is shown by its keys.
#[tokio::test]
async fn debug_shows_the_keys() {
    let guard = guard(&Fake::default()).await;
    assert!(format!("{guard:?}").contains("LockKey(k = "), "{guard:?}");
}
