//! N permits under one name.

use std::{collections::HashSet, sync::Arc, time::Duration};

use rand::Rng;
use sqlock_core::{Error, LockGuard, Locks, Semaphore};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Harness, World,
    support::{A_MOMENT, Pace, Room, join_all, poll_times, random, within},
};

/// More than a waiter is told of at once.
const MANY: usize = 12;

/// As many as there are permits hold one each, of whatever nodes, and no more.
pub async fn there_are_as_many_permits_as_told<H: Harness>(world: World<H>) {
    let (one, other) = two_nodes(&world, 3).await;
    let mut permits = Vec::new();
    for semaphore in [&one, &other, &one] {
        permits.push(semaphore.try_acquire().await.unwrap().expect("it is free"));
    }
    world.until_held(3).await;
    let keys: HashSet<_> = permits.iter().map(LockGuard::key).collect();
    assert_eq!(keys.len(), 3);
    for semaphore in [&one, &other] {
        assert!(semaphore.try_acquire().await.unwrap().is_none());
    }
    // each of them, so that a permit that is not the last one is found too
    for _ in 0..3 {
        permits.remove(0).release().await.unwrap();
        permits.push(other.try_acquire().await.unwrap().expect("one is free"));
        assert!(one.try_acquire().await.unwrap().is_none());
    }
}

/// A guard that is dropped returns its permit.
pub async fn a_dropped_guard_returns_its_permit<H: Harness>(world: World<H>) {
    let (one, other) = two_nodes(&world, 2).await;
    for _ in 0..4 {
        let permits = world.take_all(&one).await;
        assert!(other.try_acquire().await.unwrap().is_none());
        drop(permits);
        drop(world.take_all(&other).await);
    }
}

/// A waiter gets whichever permit comes free, also where there are more than it is told of.
pub async fn a_waiter_gets_any_permit<H: Harness>(world: World<H>) {
    for count in [3, MANY] {
        let (one, other) = two_nodes(&world, count).await;
        let mut permits = world.take_all(&one).await;
        for waits in [&other, &one, &other] {
            let waits = waits.clone();
            let waiter = tokio::spawn(async move { waits.acquire().await });
            sleep(A_MOMENT).await;
            assert!(!waiter.is_finished());
            permits.remove(count / 2).release().await.unwrap();
            let permit = within(H::PATIENCE, "the waiter's turn", waiter).await;
            permits.push(permit.unwrap().unwrap());
        }
    }
}

/// A crowd that comes all the time: never too many, and everybody is served.
pub async fn a_crowd_is_served<H: Harness>(world: World<H>) {
    const PERMITS: usize = 3;
    let nodes = two_nodes(&world, PERMITS).await;
    let room = Arc::new(Room::for_at_most(PERMITS));
    let mut tasks = JoinSet::new();
    for task in 0..24 {
        let semaphore = [&nodes.0, &nodes.1][task % 2].clone();
        let room = Arc::clone(&room);
        tasks.spawn(async move {
            for _ in 0..8 {
                let permit = semaphore.acquire_within(H::PATIENCE).await.unwrap();
                let inside = room.enter();
                tokio::task::yield_now().await;
                drop(inside);
                permit.release().await.unwrap();
            }
        });
    }
    join_all(tasks).await;
}

/// Tasks that are aborted at random: never too many, and nothing is left.
pub async fn tasks_aborted_at_random_return_their_permits<H: Harness>(world: World<H>) {
    const PERMITS: usize = 3;
    let nodes = two_nodes(&world, PERMITS).await;
    let room = Arc::new(Room::for_at_most(PERMITS));
    let mut random = random();
    let mut tasks = JoinSet::new();
    for task in 0..60 {
        let semaphore = [&nodes.0, &nodes.1][task % 2].clone();
        let room = Arc::clone(&room);
        let handle = tasks.spawn(async move {
            loop {
                let permit = semaphore.acquire().await.unwrap();
                let inside = room.enter();
                tokio::task::yield_now().await;
                drop(inside);
                permit.release().await.unwrap();
            }
        });
        let lives = Duration::from_micros(random.random_range(0..40_000));
        tokio::spawn(async move {
            sleep(lives).await;
            handle.abort();
        });
    }
    while let Some(outcome) = tasks.join_next().await {
        assert!(outcome.unwrap_err().is_cancelled(), "too many");
    }
    drop(world.take_all(&nodes.1).await);
    world.until_free().await;
}

/// A try and an acquire that are dropped at every point at which they can be.
pub async fn a_cancelled_acquire_returns_its_permit<H: Harness>(world: World<H>) {
    let (one, other) = two_nodes(&world, 2).await;
    for pace in [Pace::AtOnce, Pace::AsItGoes] {
        for polls in 0..12 {
            for _ in 0..2 {
                let mut acquire = Box::pin(one.acquire());
                drop(poll_times(acquire.as_mut(), polls, pace).await);
                drop(acquire);
                drop(world.take_all(&other).await);
                let mut attempt = Box::pin(one.try_acquire());
                drop(poll_times(attempt.as_mut(), polls, pace).await);
                drop(attempt);
                drop(world.take_all(&other).await);
            }
        }
    }
}

/// Who waits and is dropped holds up nobody who came later, and takes nothing.
pub async fn a_cancelled_waiter_leaves_the_line<H: Harness>(world: World<H>) {
    let (one, other) = two_nodes(&world, 2).await;
    for polls in [0, 1, 2, 4, 8, 12] {
        let mut permits = world.take_all(&other).await;
        let mut first = Box::pin(one.acquire());
        let answer = poll_times(first.as_mut(), polls, Pace::AsItGoes).await;
        assert!(answer.is_none(), "there is none");
        let second = one.clone();
        let second = tokio::spawn(async move { second.acquire_within(H::PATIENCE).await });
        sleep(Duration::from_millis(10)).await;
        drop(first);
        permits.remove(0).release().await.unwrap();
        let permit = within(2 * H::PATIENCE, "the second's turn", second).await;
        let permit = permit.unwrap().expect("one came free");
        assert!(other.try_acquire().await.unwrap().is_none());
        drop((permit, permits));
        drop(world.take_all(&one).await);
    }
}

/// A timeout keeps to the budget, names the semaphore, and holds nothing.
pub async fn a_timeout_names_the_semaphore<H: Harness>(world: World<H>) {
    let (one, other) = two_nodes(&world, 2).await;
    let permits = world.take_all(&one).await;
    let budget = Duration::from_millis(150);
    for waiter in [&one, &other] {
        match waiter.acquire_within(budget).await {
            Err(Error::Timeout { key, waited }) => {
                assert_eq!(key.name(), Some("s"));
                assert!(waited >= budget, "says {waited:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    world.until_held(2).await;
    drop(permits);
    world.until_free().await;
    sleep(A_MOMENT).await;
    assert_eq!(world.harness().held().await, 0, "taken after the timeout");
}

/// A second number of permits is refused where it can be seen; where it cannot, the larger one
/// holds, and not the sum.
pub async fn numbers_of_permits_do_not_add_up<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let two = one.semaphore("s", 2).unwrap();
    let refused = one.clone().semaphore("s", 3).err();
    assert!(
        matches!(refused, Some(Error::InvalidOption { .. })),
        "{refused:?}"
    );
    assert!(one.semaphore("s", 2).is_ok());
    for impossible in [0, 1_000_000] {
        assert!(one.semaphore("another", impossible).is_err());
    }
    let three = other.semaphore("s", 3).unwrap();
    let mut permits = world.take_all(&two).await;
    permits.push(three.acquire().await.unwrap());
    for semaphore in [&two, &three] {
        assert!(semaphore.try_acquire().await.unwrap().is_none());
    }
    drop(permits);
    // when nobody uses the smaller one any more, it can be enlarged
    drop(two);
    drop(world.take_all(&one.semaphore("s", 3).unwrap()).await);
}

/// Semaphores are apart from each other, and from the lock of their name.
pub async fn semaphores_are_apart<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let lock = one.acquire("s").await.unwrap();
    let permits = world.take_all(&one.semaphore("s", 2).unwrap()).await;
    let another = world
        .take_all(&other.semaphore("another", 2).unwrap())
        .await;
    let number = other.semaphore(7, 1).unwrap();
    let name = other.semaphore("7", 1).unwrap();
    let numbers = (number.acquire().await.unwrap(), name.acquire().await);
    assert!(other.try_acquire("s").await.unwrap().is_none());
    assert!(numbers.1.is_ok());
    drop((lock, permits, another, numbers));
}

async fn two_nodes<H: Harness>(
    world: &World<H>,
    permits: usize,
) -> (Semaphore<H::Backend>, Semaphore<H::Backend>) {
    let (one, other) = world.two_nodes().await;
    let semaphore = |locks: Locks<H::Backend>| locks.semaphore("s", permits).unwrap();
    (semaphore(one), semaphore(other))
}
