//! Futures that are dropped at every point at which they can be.
//!
//! Each is polled 0, 1, 2, … times and dropped; after each drop another node has to get the lock.

use std::{future::Future, pin::pin};

use sqlock_core::{Error, Locks};
use tokio::time::{sleep, timeout};

use crate::{
    Harness, World,
    support::{A_MOMENT, Pace, poll_times},
};

/// Beyond the awaits of any verb; one that waits for a lock is given up here.
const MOST_POLLS: usize = 16;
/// Replies are under way for a while, so that each point is met at several moments.
const ROUNDS: usize = 4;
const KEYS: [&str; 3] = ["a", "b", "c"];

/// A try.
pub async fn of_a_try<H: Harness>(world: World<H>) {
    let (node, other) = world.two_nodes().await;
    sweep(&world, &other, || node.try_acquire("a")).await;
}

/// A try that is refused.
pub async fn of_a_try_that_is_refused<H: Harness>(world: World<H>) {
    let (node, other) = world.two_nodes().await;
    let guard = other.acquire("held").await.unwrap();
    sweep(&world, &other, || async {
        node.lock_all(["a", "b", "held"]).try_acquire().await
    })
    .await;
    guard.release().await.unwrap();
}

/// An acquire of a free lock, or of several.
pub async fn of_an_acquire<H: Harness>(world: World<H>) {
    let (node, other) = world.two_nodes().await;
    sweep(&world, &other, || node.acquire("a")).await;
    sweep(&world, &other, || node.acquire_all(KEYS)).await;
}

/// An acquire that waits while others hold the lock: it leaves the queue.
pub async fn of_an_acquire_that_waits<H: Harness>(world: World<H>) {
    let (node, other) = world.two_nodes().await;
    for holder in [&node, &other] {
        let guard = holder.acquire("held").await.unwrap();
        sweep(&world, &other, || node.acquire_all(["a", "held"])).await;
        guard.release().await.unwrap();
        world.until_free().await;
        sleep(A_MOMENT).await;
        assert_eq!(world.harness().held().await, 0, "taken by a dropped waiter");
    }
}

/// An acquire that waits, dropped while the grant is on its way.
pub async fn of_an_acquire_that_is_just_granted<H: Harness>(world: World<H>) {
    let (node, other) = world.two_nodes().await;
    for holder in [&node, &other] {
        for round in 0..40 {
            let guard = holder.acquire("a").await.unwrap();
            {
                let mut waiter = pin!(node.acquire("a"));
                let answer = poll_times(waiter.as_mut(), 1 + round % 4, Pace::AsItGoes).await;
                assert!(answer.is_none(), "two hold the lock together");
                guard.release().await.unwrap();
                match round % 3 {
                    0 => {}
                    1 => tokio::task::yield_now().await,
                    _ => world.until_held(1).await,
                }
            }
            free(&world, &other, "the grant was on its way").await;
        }
    }
}

/// The whole of `run_once`, its body included.
pub async fn of_a_body<H: Harness>(world: World<H>) {
    let (node, other) = world.two_nodes().await;
    sweep(&world, &other, || async {
        let body = node.run_once("a", async |lock| {
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
            lock.check()
        });
        body.await
    })
    .await;
    sweep(&world, &other, || async {
        let body = node.lock_all(KEYS).with_lock(async |_| {
            tokio::task::yield_now().await;
            Err::<(), _>(Error::Standby)
        });
        body.await
    })
    .await;
}

/// A release.
pub async fn of_a_release<H: Harness>(world: World<H>) {
    let (node, other) = world.two_nodes().await;
    for pace in [Pace::AtOnce, Pace::AsItGoes] {
        for polls in 0..MOST_POLLS {
            let mut done = 0;
            for _ in 0..ROUNDS {
                let guard = world.take(&node, "a", "before the release").await;
                let mut release = Box::pin(guard.release());
                if let Some(outcome) = poll_times(release.as_mut(), polls, pace).await {
                    outcome.unwrap();
                    done += 1;
                }
                drop(release);
                free(&world, &other, &format!("a release polled {polls} times")).await;
            }
            if done == ROUNDS {
                break;
            }
        }
    }
}

/// A try and an acquire that lose a race against a timer, over and over.
pub async fn of_an_acquire_by_a_timer<H: Harness>(world: World<H>) {
    let (node, other) = world.two_nodes().await;
    for round in 0..60 {
        let limit = std::time::Duration::from_micros(40 * round);
        drop(timeout(limit, node.acquire_all(KEYS)).await);
        drop(timeout(limit, node.try_acquire("a")).await);
        free(&world, &other, "a timer dropped it").await;
    }
}

async fn sweep<H: Harness, F: Future>(
    world: &World<H>,
    other: &Locks<H::Backend>,
    future: impl Fn() -> F,
) {
    for pace in [Pace::AtOnce, Pace::AsItGoes] {
        for polls in 0..=MOST_POLLS {
            let mut done = 0;
            for _ in 0..ROUNDS {
                let mut future = Box::pin(future());
                let output = poll_times(future.as_mut(), polls, pace).await;
                done += usize::from(output.is_some());
                drop(future);
                drop(output);
                free(
                    world,
                    other,
                    &format!("dropped after {polls} polls, {pace:?}"),
                )
                .await;
            }
            if done == ROUNDS {
                break;
            }
        }
    }
}

async fn free<H: Harness>(world: &World<H>, other: &Locks<H::Backend>, why: &str) {
    for key in KEYS {
        let guard = world.take(other, key, why).await;
        guard.release().await.unwrap();
    }
}
