//! One holder at a time.

use std::time::Instant;

use crate::{Harness, World};

/// What one node holds, another does not get.
pub async fn nodes_exclude_each_other<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire("k").await.unwrap();
    world.until_held(1).await;
    assert!(other.try_acquire("k").await.unwrap().is_none());
    guard.release().await.unwrap();

    let guard = other.try_acquire("k").await.unwrap().expect("it is free");
    assert!(one.try_acquire("k").await.unwrap().is_none());
    guard.release().await.unwrap();
}

/// What one task holds, another of the same node does not get.
pub async fn tasks_of_one_node_exclude_each_other<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    let guard = locks.acquire("k").await.unwrap();
    let others = locks.clone();
    let other = tokio::spawn(async move { others.try_acquire("k").await.unwrap().is_some() });
    assert!(!other.await.unwrap());
    guard.release().await.unwrap();
}

/// A lock does not re-enter: one release frees it.
pub async fn the_same_node_does_not_enter_twice<H: Harness>(world: World<H>) {
    let (locks, other) = world.two_nodes().await;
    let guard = locks.acquire("k").await.unwrap();
    assert!(locks.try_acquire("k").await.unwrap().is_none());
    guard.release().await.unwrap();
    assert!(other.try_acquire("k").await.unwrap().is_some());
}

/// Taking and releasing can go on for as long as one likes.
pub async fn a_released_lock_can_be_taken_again<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    for round in 0..50 {
        let guard = locks.try_acquire("k").await.unwrap();
        let guard = guard.unwrap_or_else(|| panic!("not free in round {round}"));
        assert_eq!(guard.key().name(), Some("k"));
        guard.check().unwrap();
        guard.release().await.unwrap();
    }
}

/// A try answers although the holder stays.
pub async fn a_try_does_not_wait<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire("k").await.unwrap();
    let started = Instant::now();
    for _ in 0..5 {
        assert!(other.try_acquire("k").await.unwrap().is_none());
        assert!(one.try_acquire("k").await.unwrap().is_none());
    }
    assert!(started.elapsed() < H::PATIENCE);
    guard.release().await.unwrap();
}
