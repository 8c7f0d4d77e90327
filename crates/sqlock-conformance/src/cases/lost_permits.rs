//! Permits that are lost while they are held. Capability `loss`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};

use crate::{
    LossHarness, World,
    support::{join_all, within},
};

/// Each holder is told, and its permit is there for others.
pub async fn a_lost_permit_comes_back<H: LossHarness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let (ours, theirs) = (
        one.semaphore("s", 3).unwrap(),
        other.semaphore("s", 3).unwrap(),
    );
    let lost = world.take_all(&ours).await;
    world.harness().break_holder(&one).await;
    for permit in &lost {
        within(H::NOTICE, "each permit's signal", permit.lost().wait()).await;
    }
    let permits = world.take_all(&theirs).await;
    // the end of the lost ones does not end these
    drop(lost);
    assert!(ours.try_acquire().await.unwrap().is_none());
    for permit in permits {
        permit.release().await.unwrap();
    }
    drop(world.take_all(&ours).await);
}

/// As the server sees it there are never too many, whatever is lost, dropped and taken anew.
pub async fn losses_make_no_permits<H: LossHarness>(world: World<H>) {
    const PERMITS: usize = 3;
    let nodes = world.two_nodes().await;
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for task in 0..12 {
        let semaphore = [&nodes.0, &nodes.1][task % 2].semaphore("s", PERMITS);
        let (semaphore, over) = (semaphore.unwrap(), Arc::clone(&over));
        tasks.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let wait = Duration::from_millis(5 + 10 * u64::try_from(task).unwrap());
                // that it fails now and then is what this is about
                if let Ok(permit) = semaphore.acquire_within(wait).await {
                    sleep(Duration::from_millis(5)).await;
                    drop(permit);
                }
            }
        });
    }
    for round in 0..12 {
        world
            .harness()
            .break_holder([&nodes.0, &nodes.1][round % 2])
            .await;
        for _ in 0..10 {
            let held = world.harness().held().await;
            assert!(held <= PERMITS, "{held} hold a permit");
            sleep(Duration::from_millis(2)).await;
        }
    }
    over.store(true, Ordering::Relaxed);
    join_all(tasks).await;
    let semaphore = nodes.0.semaphore("s", PERMITS).unwrap();
    drop(world.take_all(&semaphore).await);
}
