//! Locks that are lost while they are held. Capability `loss`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlock_core::{Error, Locks};
use tokio::time::sleep;

use crate::{
    LossHarness, World,
    support::{A_MOMENT, within},
    world::Guard,
};

/// The holder is told soon, by every way there is, and why.
pub async fn the_holder_is_told<H: LossHarness>(world: World<H>) {
    let locks = world.node().await;
    let guard = locks.acquire("k").await.unwrap();
    let lost = guard.lost();
    let waiting = tokio::spawn(guard.lost().wait());
    let another = tokio::spawn(guard.lost().into_future());
    sleep(A_MOMENT).await;
    guard.check().unwrap();
    assert_eq!(lost.cause(), None);

    world.harness().break_holder(&locks).await;
    for waiting in [waiting, another] {
        match within(H::NOTICE, "the loss signal", waiting).await.unwrap() {
            Error::Lost { key, cause } => {
                assert_eq!(key.name(), Some("k"));
                assert!(H::explains(&cause), "{cause:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(guard.check(), Err(Error::Lost { .. })));
    assert!(lost.cause().is_some_and(|cause| H::explains(&cause)));
}

/// A signal that is made after the loss fires at once.
pub async fn a_late_signal_fires_at_once<H: LossHarness>(world: World<H>) {
    let locks = world.node().await;
    let guard = lost_guard(&world, &locks).await;
    let late = guard.lost();
    assert!(late.cause().is_some());
    let error = within(Duration::from_millis(100), "a late signal", late.wait()).await;
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    let protected = guard.protect(std::future::pending::<()>());
    let protected = within(Duration::from_millis(100), "a late body", protected).await;
    assert!(matches!(protected, Err(Error::Lost { .. })));
}

/// Release reports the loss, and a drop is quiet.
pub async fn release_reports_the_loss<H: LossHarness>(world: World<H>) {
    let locks = world.node().await;
    let guard = lost_guard(&world, &locks).await;
    let released = guard.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    drop(lost_guard(&world, &locks).await);

    // nor does a release that comes before the word of the loss claim that all was well
    let guard = locks.acquire("k").await.unwrap();
    world.harness().break_holder(&locks).await;
    let released = within(H::PATIENCE, "release", guard.release()).await;
    assert!(released.is_err(), "a lock that was lost was released");
}

/// What `protect` runs, and bodies, stop where they are.
pub async fn bodies_are_stopped<H: LossHarness>(world: World<H>) {
    struct Running(Arc<AtomicBool>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.store(false, Ordering::SeqCst);
        }
    }
    let locks = world.node().await;
    let running = Arc::new(AtomicBool::new(true));
    let run = Running(Arc::clone(&running));
    let waiting = locks.lock("k");
    let body = tokio::spawn(waiting.with_lock(async move |_| {
        let _run = run;
        std::future::pending::<Result<(), Error>>().await
    }));
    world.until_held(1).await;
    world.harness().break_holder(&locks).await;
    let outcome = within(H::NOTICE, "the body's end", body).await.unwrap();
    assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
    assert!(!running.load(Ordering::SeqCst), "the body still runs");

    let guard = world.take(&locks, "k", "after a loss").await;
    let (protected, ()) = tokio::join!(
        within(
            H::PATIENCE,
            "the work's end",
            guard.protect(std::future::pending::<()>())
        ),
        world.harness().break_holder(&locks),
    );
    assert!(matches!(protected, Err(Error::Lost { .. })));
}

/// A broken connection does not poison the next acquire, of this node or another.
pub async fn the_next_acquire_succeeds<H: LossHarness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for _ in 0..3 {
        let lost = lost_guard(&world, &one).await;
        let guard = world.take(&other, "k", "it was lost").await;
        assert!(one.try_acquire("k").await.unwrap().is_none());
        guard.release().await.unwrap();
        let guard = world.take(&one, "k", "after a loss").await;
        guard.check().unwrap();
        // the end of the lost one does not end this one
        drop(lost);
        one.acquire("another")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        assert!(other.try_acquire("k").await.unwrap().is_none());
        guard.release().await.unwrap();
    }
}

/// All that was held over the broken connection is lost: of several guards, and within one.
pub async fn all_is_lost_together<H: LossHarness>(world: World<H>) {
    let locks = world.node().await;
    let guards = [
        locks.acquire("a").await.unwrap(),
        locks.acquire_all(["b", "c", "d"]).await.unwrap(),
        locks.acquire("e").await.unwrap(),
    ];
    world.until_held(5).await;
    world.harness().break_holder(&locks).await;
    for guard in &guards {
        let lost = guard.lost().wait();
        within(H::NOTICE, "each guard's signal", lost).await;
    }
    world.until_held(0).await;
}

/// A waiter of the broken node is served all the same: nobody told it to give up.
pub async fn waiters_survive_a_broken_connection<H: LossHarness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let theirs = other.acquire("k").await.unwrap();
    let ours = one.acquire("another").await.unwrap();
    let waiting = one.lock("k").within(H::PATIENCE);
    let waiter = tokio::spawn(async move { waiting.await.unwrap().release().await });
    sleep(A_MOMENT).await;
    world.harness().break_holder(&one).await;
    within(H::NOTICE, "the loss signal", ours.lost().wait()).await;
    sleep(A_MOMENT).await;
    theirs.release().await.unwrap();
    within(H::PATIENCE, "the waiter's turn", waiter)
        .await
        .unwrap()
        .unwrap();
}

/// After a release, a drop or a roll-back the signal stays silent, whatever happens then.
pub async fn no_signal_after_a_normal_end<H: LossHarness>(world: World<H>) {
    let locks = world.node().await;
    let mut signals = Vec::new();
    for end in 0..3 {
        let guard = locks.acquire("k").await.unwrap();
        signals.push(guard.lost());
        match end {
            0 => guard.release().await.unwrap(),
            1 => guard.roll_back().await.unwrap(),
            _ => drop(guard),
        }
        world.until_free().await;
    }
    let holder = locks.acquire("k").await.unwrap();
    world.harness().break_holder(&locks).await;
    within(H::NOTICE, "the loss signal", holder.lost().wait()).await;
    locks.shutdown().await.unwrap();
    for signal in signals {
        assert_eq!(signal.cause(), None);
        signal.check().unwrap();
        let fired = tokio::time::timeout(Duration::from_millis(20), signal.wait());
        assert!(fired.await.is_err(), "it fired after a normal end");
    }
}

async fn lost_guard<H: LossHarness>(world: &World<H>, locks: &Locks<H::Backend>) -> Guard<H> {
    let guard = world.take(locks, "k", "before the loss").await;
    let lost = guard.lost();
    world.harness().break_holder(locks).await;
    within(H::NOTICE, "the loss signal", lost.wait()).await;
    guard
}
