//! A shut-down: guards are told, and it waits for those who work in them.

use sqlock::{Error, LossCause};
use tokio::time::timeout;

use crate::{
    support::PATIENCE,
    world::{both_ways, insert},
};

#[test]
fn it_waits_for_the_work() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        let lost = guard.lost();
        let shutting_down = locks.clone();
        let shutdown = tokio::spawn(async move { shutting_down.shutdown().await });

        let error = timeout(PATIENCE, lost).await.unwrap();
        assert!(
            matches!(
                error,
                Error::Lost {
                    cause: LossCause::ShutDown,
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(!shutdown.is_finished());
        let late = locks.try_acquire("another").await;
        assert!(matches!(late, Err(Error::ShutDown { .. })), "{late:?}");
        // it is still the guard's: nobody else has it
        let other = world.locks();
        assert!(other.try_acquire("k").await.unwrap().is_none());
        let released = guard.release().await;
        assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");

        let done = timeout(PATIENCE, shutdown).await.unwrap();
        done.unwrap().unwrap();
        world.has_work(&[]).await;
        world.is_clean().await;
    });
}

#[test]
fn those_who_wait_are_turned_away() {
    both_ways(async |world| {
        let (locks, other) = (world.locks(), world.locks());
        let theirs = other.acquire("k").await.unwrap();
        let waiting = tokio::spawn(locks.lock("k").acquire());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        locks.shutdown().await.unwrap();
        let answer = timeout(PATIENCE, waiting).await.unwrap().unwrap();
        assert!(matches!(answer, Err(Error::ShutDown { .. })), "{answer:?}");
        theirs.release().await.unwrap();
        world.is_clean().await;
    });
}
