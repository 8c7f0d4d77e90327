//! Fencing tokens. Capability `tokens`.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use sqlock_core::FencingToken;
use tokio::task::JoinSet;

use crate::{Harness, World, support::join_all};

/// Each acquisition of a key has a higher token than the one before, whichever node makes it.
pub async fn they_rise_over_nodes<H: Harness>(world: World<H>) {
    let nodes = [world.node().await, world.node().await];
    let mut last = None;
    for round in 0..40 {
        let guard = world
            .take(&nodes[round % 2], "k", "one after the other")
            .await;
        let token = guard.token().expect("a token");
        assert!(Some(token) > last, "{token} after {last:?}");
        assert_eq!(guard.token(), Some(token), "a guard's token changed");
        last = Some(token);
        if round % 3 == 0 {
            drop(guard);
        } else {
            guard.release().await.unwrap();
        }
    }
}

/// The order of tokens is the order in which the lock was held, under contention as well.
pub async fn they_rise_under_contention<H: Harness>(world: World<H>) {
    let nodes = [world.node().await, world.node().await];
    let highest = Arc::new(AtomicI64::new(i64::MIN));
    let mut tasks = JoinSet::new();
    for task in 0..16 {
        let (locks, highest) = (nodes[task % 2].clone(), Arc::clone(&highest));
        tasks.spawn(async move {
            for _ in 0..6 {
                let guard = locks.acquire("k").await.unwrap();
                let token = guard.token().map(FencingToken::get).expect("a token");
                let before = highest.swap(token, Ordering::SeqCst);
                assert!(token > before, "{token} after {before}");
                guard.release().await.unwrap();
            }
        });
    }
    join_all(tasks).await;
}

/// The token of a guard over several keys is higher than the last token of each of them.
pub async fn they_rise_over_every_key_of_a_guard<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for _ in 0..10 {
        let mut before = Vec::new();
        for (locks, key) in [(&one, "a"), (&other, "b"), (&one, "c")] {
            let guard = locks.acquire(key).await.unwrap();
            before.push(guard.token().expect("a token"));
            guard.release().await.unwrap();
        }
        let guard = other.acquire_all(["a", "b", "c"]).await.unwrap();
        let all = guard.token().expect("a token");
        assert!(
            before.iter().all(|token| all > *token),
            "{all} after {before:?}"
        );
        guard.release().await.unwrap();
        for key in ["a", "b", "c"] {
            let guard = one.acquire(key).await.unwrap();
            assert!(guard.token().expect("a token") > all);
            guard.release().await.unwrap();
        }
    }
}

/// A backend that is chosen at run time hands the same tokens on.
pub async fn an_erased_guard_has_its_token<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    let guard = locks.acquire("k").await.unwrap();
    let first = guard.token().expect("a token");
    guard.release().await.unwrap();
    let second = locks.erased().acquire("k").await.unwrap();
    assert!(second.token().expect("a token") > first);
}
