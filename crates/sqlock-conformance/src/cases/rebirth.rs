//! A node on another runtime than its own.

use crate::{
    Harness, World,
    support::{elsewhere, on_a_thread},
};

/// The locks of a node whose runtime is gone work on another one.
pub async fn a_node_outlives_its_runtime<H: Harness>(world: World<H>) {
    let inner = world.clone();
    let (runtime, locks) = elsewhere(async move || {
        let locks = inner.node().await;
        locks.acquire("k").await.unwrap().release().await.unwrap();
        locks
    })
    .await;
    on_a_thread(move || drop(runtime)).await;
    let guard = world.take(&locks, "k", "the node's runtime is gone").await;
    world.until_held(1).await;
    guard.release().await.unwrap();
}
