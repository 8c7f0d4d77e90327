//! A clock of the server that steps under leases. Capability `clock_steps`.

use std::time::Duration;

use sqlock_core::Error;
use tokio::time::sleep;

use crate::{
    ClockHarness, Step, World,
    support::{Apart, within},
};

const HOUR: Duration = Duration::from_secs(3600);

/// What has run out by the server's clock is lost to a holder who renews, though nobody took it and
/// the holder's own clock says otherwise.
pub async fn a_step_ahead_is_a_loss<H: ClockHarness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let lease = one.lock("k").ttl(H::TTL * 3).acquire().await.unwrap();
    world.harness().step(Step::Ahead(HOUR)).await;
    let lost = within(H::TTL * 3 + H::PATIENCE, "the loss", lease.lost().wait()).await;
    assert!(matches!(lost, Error::Lost { .. }), "{lost:?}");
    assert!(!lease.is_valid());
    assert_eq!(world.harness().held().await, 0, "it was revived");
    let next = world.take(&other, "k", "it ran out").await;
    next.release().await.unwrap();
}

/// The one case in which two can believe that they hold the lock. The token tells them apart, and
/// the older one learns of it as soon as it reaches the server.
pub async fn after_a_step_ahead_the_token_decides<H: ClockHarness>(world: World<H>) {
    let mut paused = Apart::start(&world).await;
    let other = world.node().await;
    let mut older = paused.take(H::TTL * 6).await;
    world.harness().step(Step::Ahead(HOUR)).await;
    let newer = world.take(&other, "k", "it ran out").await;
    if let (Some(old), Some(new)) = (older.token(), newer.token()) {
        assert!(old < new, "{new} after {old}");
    }
    let _resumed = paused.go_on();
    let answer = older.extend(H::TTL * 6).await;
    assert!(matches!(answer, Err(Error::Lost { .. })), "{answer:?}");
    assert!(!older.is_valid());
    assert!(newer.is_valid());
    newer.release().await.unwrap();
}

/// A step back keeps the lock from others for longer, and its holder does not believe in it for any
/// longer than before.
pub async fn a_step_back_prolongs_nothing_for_the_holder<H: ClockHarness>(world: World<H>) {
    let mut paused = Apart::start(&world).await;
    let other = world.node().await;
    let lease = paused.take(H::TTL).await;
    let left = lease.remaining();
    world.harness().step(Step::Back(H::TTL * 5)).await;
    assert!(lease.remaining() <= left);
    sleep(H::TTL).await;
    assert!(!lease.is_valid(), "it goes by the server's clock");
    assert!(other.try_acquire("k").await.unwrap().is_none());
    let _resumed = paused.go_on();
    let released = lease.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    let next = world
        .take(&other, "k", "it ran out, or was given back")
        .await;
    next.release().await.unwrap();
}
