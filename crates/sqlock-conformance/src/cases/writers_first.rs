//! A waiting writer among readers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlock_core::SharedBackend;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Harness, World,
    support::{A_MOMENT, join_all, within},
};

/// A writer that waits gets its turn although readers overlap without a gap.
pub async fn a_waiting_writer_is_not_starved<H: Harness<Backend: SharedBackend>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for writers in [&one, &other] {
        let over = Arc::new(AtomicBool::new(false));
        let mut readers = JoinSet::new();
        for locks in [one.clone(), other.clone()] {
            let over = Arc::clone(&over);
            readers.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let mut guard = locks.lock("k").shared().acquire().await.unwrap();
                    // each reader is there before the last one leaves, unless it has to wait
                    while !over.load(Ordering::Relaxed) {
                        sleep(Duration::from_millis(2)).await;
                        let next = locks.lock("k").shared().within(Duration::from_millis(100));
                        match next.acquire().await {
                            Ok(next) => guard = next,
                            Err(_) => break,
                        }
                    }
                    drop(guard);
                    sleep(Duration::from_millis(2)).await;
                }
            });
        }
        sleep(A_MOMENT).await;
        let writer = within(H::PATIENCE, "the writer's turn", writers.acquire("k")).await;
        over.store(true, Ordering::Relaxed);
        writer.unwrap().release().await.unwrap();
        join_all(readers).await;
    }
}
