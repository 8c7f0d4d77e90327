//! Many tasks, few locks.

use std::{sync::Arc, time::Duration};

use rand::Rng;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Harness, World,
    support::{Section, join_all, random},
};

/// A hundred tasks on two nodes want one lock, and are never inside together.
pub async fn a_hundred_tasks_never_overlap<H: Harness>(world: World<H>) {
    let nodes = [world.node().await, world.node().await];
    let section = Arc::new(Section::default());
    let mut tasks = JoinSet::new();
    for task in 0..100 {
        let (locks, section) = (nodes[task % 2].clone(), Arc::clone(&section));
        tasks.spawn(async move {
            for _ in 0..2 {
                let guard = locks.acquire("k").await.unwrap();
                let inside = section.enter();
                tokio::task::yield_now().await;
                drop(inside);
                guard.release().await.unwrap();
            }
        });
    }
    join_all(tasks).await;
    assert_eq!(section.entries(), 200);
}

/// Twenty names, sixty-four tasks, a thousand operations, each verb in its turn.
pub async fn a_thousand_operations_on_twenty_names<H: Harness>(world: World<H>) {
    let nodes = [world.node().await, world.node().await];
    let sections: Arc<[Section; 20]> = Arc::default();
    let mut tasks = JoinSet::new();
    for task in 0..64 {
        let (locks, sections) = (nodes[task % 2].clone(), Arc::clone(&sections));
        tasks.spawn(async move {
            for operation in 0..16 {
                let name = (task * 7 + operation * 3) % 20;
                let key = format!("name-{name}");
                let guard = match operation % 3 {
                    0 => locks.try_acquire(key).await.unwrap(),
                    _ => Some(locks.acquire(key).await.unwrap()),
                };
                let Some(guard) = guard else { continue };
                let inside = sections[name].enter();
                tokio::task::yield_now().await;
                drop(inside);
                if operation % 4 == 0 {
                    drop(guard);
                } else {
                    guard.release().await.unwrap();
                }
            }
        });
    }
    join_all(tasks).await;
}

/// Tasks that are aborted at random moments: none is ever inside with another, and nothing stays.
pub async fn tasks_aborted_at_random_leave_nothing<H: Harness>(world: World<H>) {
    let nodes = [world.node().await, world.node().await];
    let sections: Arc<[Section; 4]> = Arc::default();
    let mut random = random();
    for _ in 0..300 {
        let mut tasks = Vec::new();
        for task in 0..16 {
            let (locks, sections) = (nodes[task % 2].clone(), Arc::clone(&sections));
            let key = random.random_range(0..4_u8);
            let pause = Duration::from_micros(random.random_range(0..300));
            tasks.push(tokio::spawn(async move {
                let guard = locks.acquire(i64::from(key)).await.unwrap();
                let inside = sections[usize::from(key)].enter();
                sleep(pause).await;
                drop(inside);
                guard.release().await.unwrap();
            }));
        }
        while !tasks.is_empty() {
            // moments of a server's answer, and of a task switch
            if random.random_bool(0.3) {
                sleep(Duration::from_micros(random.random_range(0..500))).await;
            } else {
                for _ in 0..random.random_range(0..20) {
                    tokio::task::yield_now().await;
                }
            }
            let task = tasks.swap_remove(random.random_range(0..tasks.len()));
            task.abort();
            match task.await {
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) | Ok(()) => {}
            }
        }
    }
    world.until_free().await;
    for key in 0..4 {
        let guard = world.take(&nodes[0], key, "a task was aborted").await;
        guard.release().await.unwrap();
    }
}
