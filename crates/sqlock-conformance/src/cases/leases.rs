//! Locks that run out. Capability `leases`.

use std::time::Duration;

use sqlock_core::{Error, LossCause, Result};
use tokio::time::{Instant, sleep};

use crate::{LeaseHarness, World, support::Apart, support::within};

/// A lease ends at its TTL although nobody ends it, for its holder before anybody else gets it.
pub async fn a_paused_holder_is_succeeded<H: LeaseHarness>(world: World<H>) {
    let mut paused = Apart::start(&world).await;
    let other = world.node().await;
    let older = paused.take(H::TTL).await;
    assert!(older.remaining() <= H::TTL);
    let refused = other.try_acquire("k").await.unwrap().is_none();
    assert!(refused || !older.is_valid(), "two hold the lock together");

    let newer = world.take(&other, "k", "its lease ran out").await;
    assert!(!older.is_valid(), "two believe that they hold the lock");
    assert_eq!(older.remaining(), Duration::ZERO);
    assert!(matches!(older.check(), Err(Error::Lost { .. })));
    assert!(newer.is_valid());
    newer.release().await.unwrap();
    drop(older);
}

/// Work that outlives the TTL keeps its lease.
pub async fn a_lease_is_renewed<H: LeaseHarness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let lease = one.lock("k").ttl(H::TTL).acquire().await.unwrap();
    let started = Instant::now();
    while started.elapsed() < H::TTL * 3 {
        assert!(lease.is_valid(), "it was not renewed");
        let refused = other.try_acquire("k").await.unwrap().is_none();
        assert!(refused || !lease.is_valid(), "two hold the lock together");
        sleep(H::TTL / 10).await;
    }
    lease.release().await.unwrap();
    assert!(other.try_acquire("k").await.unwrap().is_some());
}

/// A holder that was paused, and goes on after another has taken its lease: it knows, its release
/// says so, and the other keeps the lease.
pub async fn a_holder_that_was_taken_over_disturbs_nobody<H: LeaseHarness>(world: World<H>) {
    let mut paused = Apart::start(&world).await;
    let other = world.node().await;
    let mut older = paused.take(H::TTL).await;
    let newer = world.take(&other, "k", "its lease ran out").await;
    if let (Some(old), Some(new)) = (older.token(), newer.token()) {
        assert!(old < new, "{new} after {old}");
    }
    let _resumed = paused.go_on();
    is_refused(&older.extend(H::TTL * 2).await);
    is_refused(&older.release().await);
    // whatever it does of its own accord, it has done by then
    sleep(H::TTL).await;
    assert!(newer.is_valid(), "the older holder took the lease back");
    assert_eq!(world.harness().held().await, 1);
    newer.release().await.unwrap();
}

/// What has run out is lost, though nobody took it: a renewal that comes too late revives nothing.
pub async fn a_late_renewal_revives_nothing<H: LeaseHarness>(world: World<H>) {
    let mut paused = Apart::start(&world).await;
    let other = world.node().await;
    let mut lease = paused.take(H::TTL).await;
    world.until_held(0).await;
    assert!(!lease.is_valid());
    let _resumed = paused.go_on();
    is_refused(&lease.extend(H::TTL * 5).await);
    sleep(H::TTL).await;
    assert_eq!(world.harness().held().await, 0, "it was revived");
    assert!(lease.check().is_err());
    let next = other.try_acquire("k").await.unwrap();
    next.expect("it is free").release().await.unwrap();
}

/// An extension is the server's as well as the holder's.
pub async fn an_extension_outlasts_the_ttl<H: LeaseHarness>(world: World<H>) {
    let mut paused = Apart::start(&world).await;
    let other = world.node().await;
    let longer = H::TTL * 6;
    let lease = paused
        .run(async move |locks| {
            let lock = locks.lock("k").ttl(H::TTL);
            let mut lease = lock.acquire().await.unwrap();
            lease.extend(longer).await.unwrap();
            lease
        })
        .await;
    let left = lease.remaining();
    assert!(H::TTL * 2 < left && left <= longer, "{left:?} are left");
    sleep(H::TTL * 3 / 2).await;
    assert!(lease.is_valid());
    let refused = other.try_acquire("k").await.unwrap().is_none();
    assert!(refused, "the extension was the holder's alone");
    let _resumed = paused.go_on();
    lease.release().await.unwrap();
    assert!(other.try_acquire("k").await.unwrap().is_some());
}

/// Where renewals do not get through, the holder is told when its lease ends, without asking.
pub async fn the_end_is_told<H: LeaseHarness>(world: World<H>) {
    let locks = world.node().await;
    let lease = locks.lock("k").ttl(H::TTL).acquire().await.unwrap();
    let blocked = world.harness().block().await;
    // by a task that looks when it is woken, and not before
    let told = tokio::spawn(lease.lost().wait());
    let lost = within(H::TTL + H::PATIENCE, "the loss signal", told).await;
    let lost = lost.unwrap();
    let cause = LossCause::Expired;
    assert!(
        matches!(&lost, Error::Lost { cause: told, .. } if *told == cause),
        "{lost:?}"
    );
    assert!(!lease.is_valid());
    drop(blocked);
    assert!(lease.release().await.is_err());
}

/// A grant whose answer comes after its end is of no use to anybody, and is not given.
pub async fn a_grant_that_comes_too_late_is_not_given<H: LeaseHarness>(world: World<H>) {
    let locks = world.node().await;
    // its connections are there
    drop(locks.acquire("another").await.unwrap());
    let blocked = world.harness().block().await;
    let lock = locks.lock("k").ttl(H::TTL).within(H::PATIENCE + H::TTL * 2);
    let asked = tokio::spawn(async move {
        let lease = lock.acquire().await.unwrap();
        let is_valid = lease.is_valid();
        (lease, is_valid)
    });
    sleep(H::TTL * 3 / 2).await;
    assert!(!asked.is_finished(), "the block does not block");
    drop(blocked);
    let (lease, is_valid) = within(H::PATIENCE, "the grant", asked).await.unwrap();
    assert!(is_valid, "the lease was over before it was given");
    lease.release().await.unwrap();
}

fn is_refused(answer: &Result<()>) {
    assert!(matches!(answer, Err(Error::Lost { .. })), "{answer:?}");
}
