//! How a lock ends.

use std::{panic::AssertUnwindSafe, pin::pin};

use sqlock_core::Held;
use tokio::task::JoinSet;

use crate::{
    Harness, World,
    support::{Pace, join_all, poll_times},
};

/// `release` returns when the lock is free for others, and not before.
pub async fn release_returns_when_the_lock_is_free<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for round in 0..25 {
        let guard = one.acquire("k").await.unwrap();
        guard.release().await.unwrap();
        let next = other.try_acquire("k").await.unwrap();
        let next = next.unwrap_or_else(|| panic!("not free in round {round}"));
        next.release().await.unwrap();
    }
}

/// A dropped guard releases.
pub async fn drop_frees_the_lock<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire("k").await.unwrap();
    drop(guard);
    let guard = world.take(&other, "k", "a dropped guard holds").await;
    guard.release().await.unwrap();

    // the same where the next is of the same node, over and over
    for _ in 0..25 {
        drop(world.take(&one, "k", "a dropped guard holds").await);
    }
}

/// A panic drops the guard, and that releases.
pub async fn a_panic_frees_the_lock<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let task = tokio::spawn(async move {
        let _guard = one.acquire("k").await.unwrap();
        std::panic::resume_unwind(Box::new("the work panics"));
    });
    assert!(task.await.unwrap_err().is_panic());
    let guard = world.take(&other, "k", "a panic holds").await;

    let unwound = std::panic::catch_unwind(AssertUnwindSafe(move || {
        let _guard = guard;
        std::panic::resume_unwind(Box::new("the work panics"));
    }));
    assert!(unwound.is_err());
}

/// Futures are lazy: one that is never polled releases by being dropped.
pub async fn a_release_that_is_never_polled_frees_the_lock<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire("k").await.unwrap();
    drop(guard.release());
    let guard = world.take(&other, "k", "release was not polled").await;
    drop(guard.roll_back());
}

/// A release that was sent, and is sent again by the guard's drop, does not free the lock of who
/// has it next.
pub async fn a_doubled_release_spares_the_next_holder<H: Harness>(world: World<H>) {
    let (node, watcher) = world.two_nodes().await;
    for round in 0..200 {
        let guard = node.acquire("k").await.unwrap();
        let next = {
            let mut release = pin!(guard.release());
            let done = poll_times(release.as_mut(), 1, Pace::AtOnce).await;
            // the sibling is granted the key between the first release and the drop
            let sibling = world.take(&node, "k", "a release was sent").await;
            drop(done);
            sibling
        };
        // what the drop sent has arrived when this has an answer
        let other = node.acquire("another").await.unwrap();
        other.release().await.unwrap();
        let thief = watcher.try_acquire("k").await.unwrap();
        assert!(thief.is_none(), "freed by a second release, round {round}");
        assert!(
            node.try_acquire("k").await.unwrap().is_none(),
            "round {round}"
        );
        next.check().unwrap();
        next.release().await.unwrap();
    }
}

/// Ending a lock twice by hand, and then by a drop, does not free the lock of who has it next.
pub async fn ending_twice_spares_the_next_holder<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let mut guard = one.acquire("k").await.unwrap();
    guard.held_mut().release().await.unwrap();
    for next in [&one, &other] {
        let next = next.try_acquire("k").await.unwrap().expect("it is free");
        let _ = guard.held_mut().release().await;
        guard.held_mut().abandon();
        guard.held_mut().abandon();
        // what was sent by that has arrived when this has an answer
        one.acquire("another")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        assert!(one.try_acquire("k").await.unwrap().is_none());
        assert!(other.try_acquire("k").await.unwrap().is_none());
        next.check().unwrap();
        next.release().await.unwrap();
    }
    drop(guard);
}

/// A drop that comes while another's release is under way, many at once.
pub async fn many_guards_end_together<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    let mut guards = Vec::new();
    for n in 0..40 {
        guards.push(locks.acquire(n).await.unwrap());
    }
    world.until_held(40).await;
    let mut tasks = JoinSet::new();
    for (n, guard) in guards.into_iter().enumerate() {
        tasks.spawn(async move {
            if n % 2 == 0 {
                guard.release().await.unwrap();
            }
        });
    }
    join_all(tasks).await;
    world.until_free().await;
    for n in 0..40 {
        let guard = locks.try_acquire(n).await.unwrap().expect("it is free");
        guard.release().await.unwrap();
    }
}
