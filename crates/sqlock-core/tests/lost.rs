//! The loss signal, by itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod fake;

use std::time::Duration;

use fake::Fake;
use sqlock_core::{Error, Locks, LossCause, Lost};
use tokio::time::timeout;

const SOON: Duration = Duration::from_millis(20);

#[tokio::test]
async fn it_fires_for_all_who_wait_and_for_those_who_come_later() {
    let fake = Fake::default();
    let guard = Locks::new(fake.clone()).acquire("k").await.unwrap();
    let waiting = [guard.lost(), guard.lost().clone()].map(|lost| tokio::spawn(lost.wait()));
    tokio::task::yield_now().await;
    guard.check().unwrap();

    fake.lose(LossCause::Unresponsive);
    for waiting in waiting {
        assert_lost(&waiting.await.unwrap());
    }
    assert_lost(&guard.lost().await);
    assert_lost(&guard.check().unwrap_err());
    assert_eq!(guard.lost().cause(), Some(LossCause::Unresponsive));
}

#[tokio::test]
async fn it_outlives_the_guard_and_is_silent_after_a_release() {
    let fake = Fake::default();
    let guard = Locks::new(fake.clone()).acquire("k").await.unwrap();
    let lost = guard.lost();
    drop(guard);
    fake.confirm_release();
    assert_eq!(lost.cause(), None);
    lost.check().unwrap();
    assert!(timeout(SOON, lost.wait()).await.is_err());
}

#[tokio::test]
async fn only_the_first_end_counts() {
    let fake = Fake::default();
    let guard = Locks::new(fake.clone()).acquire("k").await.unwrap();
    fake.lose(LossCause::Expired);
    fake.lose(LossCause::TakenOver);
    fake.confirm_release();
    assert_eq!(guard.lost().cause(), Some(LossCause::Expired));
}

/// An owner that is gone without a word is a loss.
#[tokio::test]
async fn a_sender_that_is_dropped_tells_that_the_owner_is_gone() {
    let fake = Fake::default();
    let guard = Locks::new(fake.clone()).acquire("k").await.unwrap();
    fake.drop_sender();
    assert_eq!(guard.lost().cause(), Some(LossCause::OwnerGone));
}

#[tokio::test]
async fn one_that_never_fires() {
    let never = Lost::never();
    never.check().unwrap();
    assert_eq!(never.cause(), None);
    assert_eq!(never.clone().protect(async { 7 }).await.unwrap(), 7);
    assert!(timeout(SOON, never).await.is_err());
}

#[tokio::test]
async fn protect_gives_the_work_or_stops_it() {
    let fake = Fake::default();
    let guard = Locks::new(fake.clone()).acquire("k").await.unwrap();
    assert_eq!(guard.protect(async { 7 }).await.unwrap(), 7);

    let (sender, dropped) = tokio::sync::oneshot::channel::<()>();
    let work = async move {
        let _alive = sender;
        std::future::pending::<()>().await;
    };
    let (outcome, ()) = tokio::join!(guard.protect(work), async {
        tokio::task::yield_now().await;
        fake.lose(LossCause::ConnectionClosed);
    });
    assert!(matches!(
        outcome,
        Err(Error::Lost {
            cause: LossCause::ConnectionClosed,
            ..
        })
    ));
    assert!(
        dropped.await.is_err(),
        "the work is dropped when protect returns"
    );

    // a loss goes before work that is done at once
    assert!(guard.protect(async { 7 }).await.is_err());
}

/// Losses and waits that cross, on two threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_loss_is_missed() {
    for _ in 0..500 {
        let fake = Fake::default();
        let guard = Locks::new(fake.clone()).acquire("k").await.unwrap();
        let waiting = tokio::spawn(guard.lost().wait());
        let losing = tokio::spawn(async move { fake.lose(LossCause::Removed) });
        losing.await.unwrap();
        let error = timeout(Duration::from_secs(10), waiting).await;
        assert!(matches!(error.unwrap().unwrap(), Error::Lost { .. }));
    }
}

fn assert_lost(error: &Error) {
    match error {
        Error::Lost { key, .. } => assert_eq!(key.name(), Some("k")),
        other => panic!("{other:?}"),
    }
}
