//! Several locks, one guard.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sqlock_core::Error;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Harness, World,
    support::{A_MOMENT, Section, join_all, within},
};

/// One guard holds them all, and its release frees them all.
pub async fn one_guard_holds_them_all<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire_all(["a", "b", "c"]).await.unwrap();
    assert_eq!(guard.keys().len(), 3);
    world.until_held(3).await;
    for key in ["a", "b", "c"] {
        assert!(one.try_acquire(key).await.unwrap().is_none(), "{key}");
        assert!(other.try_acquire(key).await.unwrap().is_none(), "{key}");
    }
    guard.release().await.unwrap();
    let guard = other.lock_all(["c", "b", "a"]).try_acquire().await.unwrap();
    drop(guard.expect("all are free"));
}

/// Where one of them is held elsewhere, none is taken.
pub async fn all_or_none<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for held in ["a", "b", "c"] {
        for holder in [&one, &other] {
            let guard = holder.acquire(held).await.unwrap();
            let all = one.lock_all(["a", "b", "c"]);
            assert!(all.clone().try_acquire().await.unwrap().is_none());
            world.until_held(1).await;
            let waited = all.within(Duration::from_millis(30)).acquire().await;
            assert!(matches!(waited, Err(Error::Timeout { .. })), "{waited:?}");
            world.until_held(1).await;
            guard.release().await.unwrap();
        }
    }
}

/// Nothing is held while the last of them is waited for.
pub async fn nothing_is_held_while_waiting<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    // whichever of them comes last in lock order
    for held in ["a", "b", "c"] {
        let guard = other.acquire(held).await.unwrap();
        let waiter = one.lock_all(["a", "b", "c"]);
        let waiter = tokio::spawn(async move { waiter.await.unwrap().release().await });
        sleep(A_MOMENT).await;
        assert!(!waiter.is_finished());
        world.until_held(1).await;
        guard.release().await.unwrap();
        within(H::PATIENCE, "the waiter's turn", waiter)
            .await
            .unwrap()
            .unwrap();
    }
}

/// Two who name the same locks in opposite orders do not block each other.
pub async fn opposite_orders_do_not_deadlock<H: Harness>(world: World<H>) {
    let nodes = [world.node().await, world.node().await];
    let section = Arc::new(Section::default());
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let (locks, section) = (nodes[task % 2].clone(), Arc::clone(&section));
        tasks.spawn(async move {
            for _ in 0..10 {
                let order = if task % 4 < 2 { ["a", "b"] } else { ["b", "a"] };
                let guard = locks.acquire_all(order).await.unwrap();
                let inside = section.enter();
                tokio::task::yield_now().await;
                drop(inside);
                guard.release().await.unwrap();
            }
        });
    }
    join_all(tasks).await;
    assert_eq!(section.entries(), 80);
}

/// One budget for all of them, and not one for each: what was waited for the first is gone for the
/// second.
pub async fn one_budget_for_all_of_them<H: Harness>(world: World<H>) {
    const BUDGET: Duration = Duration::from_millis(1500);
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire_all(["a", "b"]).await.unwrap();
    let [first, second] = [0, 1].map(|n| guard.keys()[n].clone());
    guard.release().await.unwrap();

    let first = other.acquire(first).await.unwrap();
    let second = other.acquire(second).await.unwrap();
    let all = one.lock_all(["a", "b"]).within(BUDGET);
    let waiter = tokio::spawn(all.acquire());
    sleep(BUDGET * 4 / 5).await;
    first.release().await.unwrap();
    let released = Instant::now();
    let answer = within(BUDGET + H::PATIENCE, "the end of the budget", waiter).await;
    let answer = answer.unwrap();
    assert!(matches!(answer, Err(Error::Timeout { .. })), "{answer:?}");
    let waited = released.elapsed();
    assert!(waited < BUDGET, "{waited:?} for the second");
    second.release().await.unwrap();
}

/// Philosophers: each needs two forks that others need as well.
pub async fn overlapping_requests_are_all_served<H: Harness>(world: World<H>) {
    let nodes = [world.node().await, world.node().await];
    let forks: Arc<[Section; 5]> = Arc::default();
    let mut tasks = JoinSet::new();
    for philosopher in 0..10 {
        let (locks, forks) = (nodes[philosopher % 2].clone(), Arc::clone(&forks));
        tasks.spawn(async move {
            let (left, right) = (philosopher % 5, (philosopher + 1) % 5);
            for _ in 0..6 {
                let keys = [left, right].map(|fork| format!("fork-{fork}"));
                let guard = locks.acquire_all(keys).await.unwrap();
                let eating = (forks[left].enter(), forks[right].enter());
                tokio::task::yield_now().await;
                drop(eating);
                guard.release().await.unwrap();
            }
        });
    }
    join_all(tasks).await;
}

/// A key that is named twice is taken once.
pub async fn doubles_are_taken_once<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire_all(["a", "b", "a", "a"]).await.unwrap();
    assert_eq!(guard.keys().len(), 2);
    world.until_held(2).await;
    guard.release().await.unwrap();
    assert!(other.try_acquire("a").await.unwrap().is_some());
}

/// As many as a program may want in one go.
pub async fn fifty_locks_in_one_guard<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let names: Vec<String> = (0..50).map(|n| format!("name-{n}")).collect();
    let guard = one.acquire_all(&names).await.unwrap();
    world.until_held(50).await;
    let waiter = other.lock_all(&names);
    let waiter = tokio::spawn(async move { waiter.await.unwrap().release().await });
    sleep(A_MOMENT).await;
    assert!(!waiter.is_finished());
    drop(guard);
    within(H::PATIENCE, "the waiter's turn", waiter)
        .await
        .unwrap()
        .unwrap();
}
