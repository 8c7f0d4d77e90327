//! Guards and futures that outlive the runtime, or never had one.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::{
    Harness, World,
    support::{A_MOMENT, elsewhere, on_a_thread},
};

/// A guard can be dropped on a thread that knows of no runtime.
pub async fn drop_needs_no_runtime<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    let guard = locks.acquire("k").await.unwrap();
    on_a_thread(move || drop(guard)).await;
    let guard = world.take(&locks, "k", "dropped without a runtime").await;

    let release = async move { guard.release().await };
    on_a_thread(move || drop(release)).await;
    world.until_free().await;
}

/// A guard can be dropped after its runtime is gone, and the loss signal does not wait for ever.
pub async fn a_guard_can_outlive_its_runtime<H: Harness>(world: World<H>) {
    let inner = world.clone();
    let (runtime, (locks, guard)) = elsewhere(async move || {
        let locks = inner.node().await;
        let guard = locks.acquire("k").await.unwrap();
        (locks, guard)
    })
    .await;
    world.until_held(1).await;
    on_a_thread(move || drop(runtime)).await;
    // lost with its runtime or held still; but never held for ever
    drop(guard);
    world.until_free().await;
    drop(locks);
}

/// A guard that a task holds is dropped by the shutdown of the runtime.
pub async fn shutdown_of_the_runtime_frees_its_guards<H: Harness>(world: World<H>) {
    let inner = world.clone();
    let (runtime, ()) = elsewhere(async move || {
        let (holding, held) = oneshot::channel();
        tokio::spawn(async move {
            let locks = inner.node().await;
            let _guard = locks.acquire("k").await.unwrap();
            holding.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        held.await.unwrap();
    })
    .await;
    world.until_held(1).await;
    on_a_thread(move || drop(runtime)).await;
    world.until_free().await;
}

/// So is a future that waits, and it does not take the lock afterwards.
pub async fn shutdown_of_the_runtime_ends_its_waiters<H: Harness>(world: World<H>) {
    let here = world.node().await;
    let guard = here.acquire("k").await.unwrap();
    let inner = world.clone();
    let (runtime, ()) = elsewhere(async move || {
        let locks = inner.node().await;
        for _ in 0..3 {
            let locks = locks.clone();
            tokio::spawn(async move { locks.acquire("k").await });
        }
        tokio::time::sleep(A_MOMENT).await;
    })
    .await;
    on_a_thread(move || drop(runtime)).await;
    guard.release().await.unwrap();
    let next = world
        .take(&here, "k", "a waiter without a runtime took it")
        .await;
    next.release().await.unwrap();
}

/// Guards, futures and requests while the runtime is going down: nothing panics or stays held.
pub async fn shutdown_of_the_runtime_under_load<H: Harness>(world: World<H>) {
    for round in 0..5 {
        let inner = world.clone();
        let (runtime, ()) = elsewhere(async move || {
            let locks = inner.node().await;
            for task in 0..12 {
                let locks = locks.clone();
                tokio::spawn(async move {
                    loop {
                        let guard = locks.acquire(task % 4).await.unwrap();
                        tokio::task::yield_now().await;
                        guard.release().await.unwrap();
                    }
                });
            }
            tokio::time::sleep(Duration::from_millis(5 * round)).await;
        })
        .await;
        on_a_thread(move || drop(runtime)).await;
        world.until_free().await;
    }
}
