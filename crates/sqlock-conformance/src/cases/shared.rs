//! Many readers or one writer. Capability `shared`.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicIsize, Ordering},
    },
    time::Duration,
};

use sqlock_core::{Held, SharedBackend};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Harness, World,
    support::{A_MOMENT, Pace, join_all, poll_times, within},
};

/// Readers hold it together, of one node and of several.
pub async fn readers_hold_together<H: Harness<Backend: SharedBackend>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let mut guards = Vec::new();
    for locks in [&one, &other, &one, &other] {
        let guard = locks.lock("k").shared().try_acquire().await.unwrap();
        guards.push(guard.expect("readers do not exclude each other"));
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
}

/// Readers exclude a writer, and a writer excludes readers.
pub async fn readers_and_writers_exclude_each_other<H: Harness<Backend: SharedBackend>>(
    world: World<H>,
) {
    let (one, other) = world.two_nodes().await;
    let reader = one.lock("k").shared().acquire().await.unwrap();
    for locks in [&one, &other] {
        assert!(locks.try_acquire("k").await.unwrap().is_none());
    }
    reader.release().await.unwrap();

    let writer = one.try_acquire("k").await.unwrap().expect("it is free");
    for locks in [&one, &other] {
        let reader = locks.lock("k").shared().try_acquire().await.unwrap();
        assert!(reader.is_none());
    }
    writer.release().await.unwrap();
}

/// The release of one reader of a node keeps the other's lock.
pub async fn readers_of_one_node_are_counted<H: Harness<Backend: SharedBackend>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for oldest_first in [true, false] {
        let mut readers = VecDeque::new();
        for _ in 0..4 {
            readers.push_back(one.lock("k").shared().acquire().await.unwrap());
        }
        while let Some(reader) = if oldest_first {
            readers.pop_front()
        } else {
            readers.pop_back()
        } {
            assert!(other.try_acquire("k").await.unwrap().is_none());
            reader.check().unwrap();
            if readers.len() % 2 == 0 {
                reader.release().await.unwrap();
            } else {
                drop(reader);
            }
        }
        let writer = world.take(&other, "k", "the last reader is gone").await;
        writer.release().await.unwrap();
    }
}

/// A shared release that is sent twice takes nothing from the other readers.
pub async fn a_doubled_shared_release_spares_other_readers<H: Harness<Backend: SharedBackend>>(
    world: World<H>,
) {
    let (one, other) = world.two_nodes().await;
    for round in 0..50 {
        let mut first = one.lock("k").shared().acquire().await.unwrap();
        let second = one.lock("k").shared().acquire().await.unwrap();
        if round % 2 == 0 {
            first.held_mut().release().await.unwrap();
            first.held_mut().abandon();
            drop(first);
        } else {
            let mut release = Box::pin(first.release());
            drop(poll_times(release.as_mut(), 1, Pace::AtOnce).await);
        }
        one.acquire("another")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        assert!(
            other.try_acquire("k").await.unwrap().is_none(),
            "round {round}"
        );
        second.release().await.unwrap();
        let writer = world.take(&other, "k", "both readers are gone").await;
        writer.release().await.unwrap();
    }
}

/// Waiting readers are served together when the writer ends, and a writer after the last reader.
pub async fn waiters_of_both_kinds_are_served<H: Harness<Backend: SharedBackend>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let writer = one.acquire("k").await.unwrap();
    let together = Arc::new(tokio::sync::Barrier::new(6));
    let mut readers = JoinSet::new();
    for n in 0..6 {
        let reader = [&one, &other][n % 2].lock("k").shared();
        let together = Arc::clone(&together);
        readers.spawn(async move {
            let guard = reader.await.unwrap();
            // none leaves before all are in
            together.wait().await;
            guard
        });
    }
    sleep(A_MOMENT).await;
    writer.release().await.unwrap();
    let guards = within(H::PATIENCE, "the readers' turn", join_all(readers)).await;

    let writer = other.lock("k");
    let writer = tokio::spawn(async move { writer.await.unwrap().release().await });
    sleep(A_MOMENT).await;
    assert!(!writer.is_finished());
    for guard in guards {
        guard.release().await.unwrap();
    }
    within(H::PATIENCE, "the writer's turn", writer)
        .await
        .unwrap()
        .unwrap();
}

/// Readers and writers at random: never a writer beside anybody.
pub async fn readers_and_writers_under_load<H: Harness<Backend: SharedBackend>>(world: World<H>) {
    const WRITER: isize = 1000;
    let nodes = [world.node().await, world.node().await];
    let inside = Arc::new(AtomicIsize::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..24 {
        let (locks, inside) = (nodes[task % 2].clone(), Arc::clone(&inside));
        tasks.spawn(async move {
            for turn in 0..8 {
                let writes = (task + turn) % 4 == 0;
                let lock = locks.lock("k");
                let lock = if writes { lock } else { lock.shared() };
                let guard = lock.acquire().await.unwrap();
                let mine = if writes { WRITER } else { 1 };
                let before = inside.fetch_add(mine, Ordering::SeqCst);
                let alone = if writes { before == 0 } else { before < WRITER };
                tokio::task::yield_now().await;
                inside.fetch_sub(mine, Ordering::SeqCst);
                assert!(alone, "a writer beside another");
                guard.release().await.unwrap();
            }
        });
    }
    join_all(tasks).await;
}

/// A reader or a writer that is dropped while it waits holds up nobody.
pub async fn a_cancelled_waiter_holds_up_nobody<H: Harness<Backend: SharedBackend>>(
    world: World<H>,
) {
    let (one, other) = world.two_nodes().await;
    for polls in [0, 1, 2, 4, 8] {
        let reader = one.lock("k").shared().acquire().await.unwrap();
        let mut writer = Box::pin(other.acquire("k"));
        assert!(
            poll_times(writer.as_mut(), polls, Pace::AsItGoes)
                .await
                .is_none()
        );
        let second = one.lock("k").shared().within(H::PATIENCE);
        let second = tokio::spawn(second.acquire());
        sleep(Duration::from_millis(10)).await;
        drop(writer);
        let second = within(H::PATIENCE, "the second reader's turn", second).await;
        let second = second.unwrap().unwrap();

        let mut third = Box::pin(other.lock("k").shared().acquire());
        drop(poll_times(third.as_mut(), polls, Pace::AsItGoes).await);
        drop(third);
        second.release().await.unwrap();
        reader.release().await.unwrap();
        let writer = world.take(&other, "k", "all readers are gone").await;
        writer.release().await.unwrap();
    }
}

/// Several keys in shared mode, erased or not.
pub async fn several_keys_are_shared_together<H: Harness<Backend: SharedBackend>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let other = other.erased_shared();
    let first = one.lock_all(["a", "b"]).shared().acquire().await.unwrap();
    let second = other
        .lock_all(["b", "c"])
        .shared()
        .try_acquire()
        .await
        .unwrap();
    let second = second.expect("readers do not exclude each other");
    assert!(
        one.lock_all(["a", "c"])
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    first.release().await.unwrap();
    second.release().await.unwrap();
    assert!(
        one.lock_all(["a", "b", "c"])
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );
}
