//! Many readers or one writer, by guards that tell which they are. Capability `writers_first`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlock_core::{Error, ReadWrite, WritersFirst};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Harness, World,
    support::{A_MOMENT, Pace, join_all, poll_times, within},
};

/// Readers are in together, and a writer alone; it is the lock of its name, also where the backend
/// is chosen at run time.
pub async fn readers_share_and_a_writer_does_not<H: Harness<Backend: WritersFirst>>(
    world: World<H>,
) {
    let (one, other) = world.two_nodes().await;
    let (here, there) = (
        one.read_write("k"),
        other.erased_writers_first().read_write("k"),
    );
    let (here, there) = (here.unwrap(), there.unwrap());
    let (first, second) = (here.read().await.unwrap(), there.read().await.unwrap());
    let third = here.try_read().await.unwrap().expect("readers share it");
    assert!(there.try_write().await.unwrap().is_none());
    assert!(one.try_acquire("k").await.unwrap().is_none());
    first.release().await.unwrap();
    second.release().await.unwrap();
    assert!(there.try_write().await.unwrap().is_none());
    third.release().await.unwrap();

    let writer = there.write().await.unwrap();
    assert!(here.try_read().await.unwrap().is_none());
    assert!(here.try_write().await.unwrap().is_none());
    writer.check().unwrap();
    writer.release().await.unwrap();
    let writer = here.try_write().await.unwrap().expect("it is free");
    let budget = Duration::from_millis(30);
    let refused = there.clone().within(budget).read().await;
    assert!(matches!(refused, Err(Error::Timeout { .. })), "{refused:?}");
    drop(writer);
}

/// A writer gets its turn although readers come without a gap, and readers get theirs after it.
pub async fn a_stream_of_readers_lets_a_writer_in<H: Harness<Backend: WritersFirst>>(
    world: World<H>,
) {
    let (one, other) = world.two_nodes().await;
    let (here, there) = (one.read_write("k").unwrap(), other.read_write("k").unwrap());
    let over = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for reader in 0..6 {
        let (lock, over) = ([&here, &there][reader % 2].clone(), Arc::clone(&over));
        readers.spawn(async move {
            let mut times = 0;
            while !over.load(Ordering::Relaxed) {
                let guard = lock.read().await.unwrap();
                // long enough that the others are in before this one leaves
                sleep(Duration::from_millis(20)).await;
                drop(guard);
                times += 1;
            }
            times
        });
    }
    sleep(A_MOMENT).await;
    for writer in [&here, &there, &here, &there] {
        let writer = within(H::PATIENCE, "the writer's turn", writer.write()).await;
        writer.unwrap().release().await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    let times = within(H::PATIENCE, "the readers' end", join_all(readers)).await;
    assert!(times.iter().all(|times| *times > 0), "{times:?}");
}

/// Readers and writers that are dropped at every point at which they can be.
pub async fn a_cancelled_one_leaves_nothing<H: Harness<Backend: WritersFirst>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let (here, there) = (one.read_write("k").unwrap(), other.read_write("k").unwrap());
    for pace in [Pace::AtOnce, Pace::AsItGoes] {
        for polls in 0..10 {
            let mut read = Box::pin(here.read());
            drop(poll_times(read.as_mut(), polls, pace).await);
            drop(read);
            is_free::<H>(&there).await;
            let mut write = Box::pin(here.write());
            drop(poll_times(write.as_mut(), polls, pace).await);
            drop(write);
            is_free::<H>(&there).await;

            // a writer that gives up lets readers in again
            let reader = there.read().await.unwrap();
            let mut write = Box::pin(here.write());
            assert!(poll_times(write.as_mut(), polls, pace).await.is_none());
            drop(write);
            let second = within(H::PATIENCE, "the second reader's turn", there.read()).await;
            drop((reader, second.unwrap()));
        }
    }
}

pub(super) async fn is_free<H: Harness<Backend: WritersFirst>>(lock: &ReadWrite<H::Backend>) {
    let writer = within(H::PATIENCE, "a writer after all are gone", lock.write()).await;
    writer.unwrap().release().await.unwrap();
}
