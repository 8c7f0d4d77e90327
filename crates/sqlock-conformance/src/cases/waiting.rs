//! Waiting, and giving up.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sqlock_core::{Error, Wait};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Harness, World,
    support::{A_MOMENT, Section, join_all, within},
};

/// A timeout comes no earlier than the budget allows, says so, and holds nothing.
pub async fn a_timeout_keeps_to_the_budget<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire("k").await.unwrap();
    for waiter in [&one, &other] {
        let budget = Duration::from_millis(150);
        let started = Instant::now();
        match waiter.acquire_within("k", budget).await {
            Err(Error::Timeout { key, waited }) => {
                assert_eq!(key.name(), Some("k"));
                assert!(waited >= budget, "says {waited:?}");
            }
            other => panic!("{other:?}"),
        }
        assert!(started.elapsed() >= budget, "after {:?}", started.elapsed());
        assert!(started.elapsed() < budget + H::PATIENCE);
    }
    world.until_held(1).await;
    guard.release().await.unwrap();
}

/// No time at all, and a time that has passed already.
pub async fn an_empty_budget_does_not_wait<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let past = tokio::time::Instant::now();
    sleep(Duration::from_millis(5)).await;
    let guard = one.acquire("k").await.unwrap();
    for wait in [Wait::at_most(Duration::ZERO), Wait::until(past)] {
        for waiter in [&one, &other] {
            let answer = waiter.acquire_within("k", wait);
            let answer = within(H::PATIENCE, "an empty budget", answer).await;
            assert!(matches!(answer, Err(Error::Timeout { .. })), "{answer:?}");
            // where it is free it may be granted, but it may not leak
            drop(waiter.acquire_within("free", wait).await);
        }
    }
    guard.release().await.unwrap();
}

/// Budgets that do not fit into a clock mean for ever.
pub async fn a_budget_can_be_endless<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    for wait in [Wait::at_most(Duration::MAX), Wait::forever()] {
        let guard = locks.acquire_within("k", wait).await.unwrap();
        let waiting = locks.lock("k").within(wait);
        let waiter = tokio::spawn(async move { waiting.await.unwrap().release().await });
        sleep(A_MOMENT).await;
        assert!(!waiter.is_finished());
        guard.release().await.unwrap();
        within(H::PATIENCE, "the waiter's turn", waiter)
            .await
            .unwrap()
            .unwrap();
    }
}

/// A waiter is served when another node releases, and when another node drops.
pub async fn a_waiter_is_served_when_the_lock_ends<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for waiter in [&one, &other] {
        for dropped in [false, true] {
            let guard = one.acquire("k").await.unwrap();
            let waiting = waiter.lock("k");
            let waiter = tokio::spawn(async move { waiting.await.unwrap().release().await });
            sleep(A_MOMENT).await;
            assert!(!waiter.is_finished(), "two hold the lock together");
            if dropped {
                drop(guard);
            } else {
                guard.release().await.unwrap();
            }
            within(H::PATIENCE, "the waiter's turn", waiter)
                .await
                .unwrap()
                .unwrap();
        }
    }
}

/// Waiters of several nodes are all served, one at a time.
pub async fn a_queue_of_waiters_drains<H: Harness>(world: World<H>) {
    let section = Arc::new(Section::default());
    let nodes = [world.node().await, world.node().await, world.node().await];
    let guard = nodes[0].acquire("k").await.unwrap();
    let mut waiters = JoinSet::new();
    for n in 0..24 {
        let waiting = nodes[n % nodes.len()].lock("k");
        let section = Arc::clone(&section);
        waiters.spawn(async move {
            let guard = waiting.await.unwrap();
            let inside = section.enter();
            tokio::task::yield_now().await;
            drop(inside);
            guard.release().await.unwrap();
        });
    }
    sleep(A_MOMENT).await;
    assert_eq!(section.entries(), 0);
    guard.release().await.unwrap();
    join_all(waiters).await;
    assert_eq!(section.entries(), 24);
}

/// Who gave up does not take the lock later.
pub async fn a_timed_out_waiter_does_not_take_the_lock_later<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for _ in 0..3 {
        let guard = one.acquire("k").await.unwrap();
        for waiter in [&one, &other] {
            let answer = waiter.acquire_within("k", Duration::from_millis(30)).await;
            assert!(matches!(answer, Err(Error::Timeout { .. })), "{answer:?}");
        }
        guard.release().await.unwrap();
        world.until_free().await;
        sleep(A_MOMENT).await;
        assert_eq!(world.harness().held().await, 0);
    }
}

/// Budgets that end at about the time of the release: granted or not, never both.
pub async fn a_timeout_that_meets_a_grant_leaks_nothing<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for round in 0..60 {
        let guard = one.acquire("k").await.unwrap();
        let waiting = other.lock("k").within(Duration::from_millis(8));
        let waiter = tokio::spawn(async move { waiting.await.is_ok() });
        sleep(Duration::from_micros(6_000 + 50 * round)).await;
        guard.release().await.unwrap();
        waiter.await.unwrap();
        let next = world.take(&one, "k", "a timeout met a grant").await;
        next.release().await.unwrap();
    }
}

/// A waiter that gives up does not hold up those behind it.
pub async fn those_behind_one_that_gives_up_are_served<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire("k").await.unwrap();
    let impatient = other.lock("k").within(Duration::from_millis(100));
    let impatient = tokio::spawn(async move { impatient.await.is_ok() });
    sleep(Duration::from_millis(20)).await;
    let patient = other.lock("k");
    let patient = tokio::spawn(async move { patient.await.unwrap().release().await });
    assert!(!impatient.await.unwrap());
    guard.release().await.unwrap();
    within(H::PATIENCE, "the next waiter's turn", patient)
        .await
        .unwrap()
        .unwrap();
}
