//! `Locks::shutdown`.

use std::pin::pin;

use sqlock_core::{Error, LossCause};
use tokio::time::sleep;

use crate::{
    Harness, World,
    support::{A_MOMENT, Pace, poll_times, within},
};

/// All that the node holds is free when it returns; what others hold stays.
pub async fn what_is_held_is_free_when_it_returns<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guards = [
        one.acquire("a").await.unwrap(),
        one.acquire_all(["b", "c"]).await.unwrap(),
    ];
    let theirs = other.acquire("d").await.unwrap();
    world.until_held(4).await;
    one.shutdown().await.unwrap();
    world.until_held(1).await;
    let next = other.lock_all(["a", "b", "c"]).try_acquire().await.unwrap();
    next.expect("free when it returns").release().await.unwrap();
    theirs.check().unwrap();
    theirs.release().await.unwrap();
    drop(guards);
}

/// Guards are told, and their release says so.
pub async fn guards_are_told<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire("a").await.unwrap();
    let dropped = one.acquire("b").await.unwrap();
    let waiting = tokio::spawn(guard.lost().wait());
    one.shutdown().await.unwrap();

    let error = within(H::PATIENCE, "the loss signal", waiting)
        .await
        .unwrap();
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
    assert_eq!(guard.lost().cause(), Some(LossCause::ShutDown));
    assert!(guard.check().is_err());

    // they end without an effect on those who have the locks now
    let next = other.acquire_all(["a", "b"]).await.unwrap();
    let released = guard.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    drop(dropped);
    sleep(A_MOMENT).await;
    world.until_held(2).await;
    next.release().await.unwrap();
}

/// Those who wait are turned away, and so are those who come later.
pub async fn requests_are_refused<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let ours = one.acquire("a").await.unwrap();
    let theirs = other.acquire("b").await.unwrap();
    let waiters = ["a", "b"].map(|key| tokio::spawn(one.lock(key).acquire()));
    sleep(A_MOMENT).await;
    one.shutdown().await.unwrap();
    for waiter in waiters {
        let answer = within(H::PATIENCE, "the waiter's answer", waiter)
            .await
            .unwrap();
        assert!(matches!(answer, Err(Error::ShutDown { .. })), "{answer:?}");
    }
    let late = one.try_acquire("c").await;
    assert!(matches!(late, Err(Error::ShutDown { .. })), "{late:?}");
    let late = one.clone().acquire("c").await;
    assert!(matches!(late, Err(Error::ShutDown { .. })), "{late:?}");
    theirs.release().await.unwrap();
    drop(ours);
    // none of the waiters took it on the way out
    let guard = other.lock_all(["a", "b", "c"]).try_acquire().await.unwrap();
    guard.expect("they are free").release().await.unwrap();
}

/// Again, before anything was locked, and by several at once.
pub async fn it_can_be_repeated<H: Harness>(world: World<H>) {
    let unused = world.node().await;
    unused.shutdown().await.unwrap();
    unused.shutdown().await.unwrap();

    let locks = world.node().await;
    let _guard = locks.acquire("k").await.unwrap();
    let (first, second) = tokio::join!(locks.shutdown(), locks.shutdown());
    first.unwrap();
    second.unwrap();
    locks.shutdown().await.unwrap();
}

/// Dropped before it is done, it goes on.
pub async fn it_goes_on_when_its_future_is_dropped<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let _guard = one.acquire("k").await.unwrap();
    {
        let mut shutdown = pin!(one.shutdown());
        drop(poll_times(shutdown.as_mut(), 1, Pace::AtOnce).await);
    }
    let guard = world.take(&other, "k", "the shutdown was cancelled").await;
    guard.release().await.unwrap();
    let late = one.try_acquire("k").await;
    assert!(matches!(late, Err(Error::ShutDown { .. })), "{late:?}");
}

/// Guards that end while it is under way.
pub async fn it_meets_releases_and_drops<H: Harness>(world: World<H>) {
    for _ in 0..10 {
        let locks = world.node().await;
        let mut guards = Vec::new();
        for n in 0..12 {
            guards.push(locks.acquire(n).await.unwrap());
        }
        let mut tasks = tokio::task::JoinSet::new();
        for (n, guard) in guards.into_iter().enumerate() {
            tasks.spawn(async move {
                if n % 2 == 0 {
                    // before the shutdown or after it
                    let released = guard.release().await;
                    assert!(
                        matches!(released, Ok(()) | Err(Error::Lost { .. })),
                        "{released:?}"
                    );
                }
            });
        }
        locks.shutdown().await.unwrap();
        crate::support::join_all(tasks).await;
        world.until_free().await;
    }
}
