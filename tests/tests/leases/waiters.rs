//! Those who wait, when their transactions fail or come through too late.

use std::time::Duration;

use sqlock::Error;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    support::{PATIENCE, execute},
    tools::{TTL, options, tamper},
    world::everywhere,
};

/// Looks that fail are repeated, though nobody else asks for the key.
#[test]
fn a_waiter_survives_connections_that_break() {
    everywhere(async |world| {
        // which outlives its connections, broken as often as those of the waiter
        let patient = options().ttl(Duration::from_secs(3600));
        let holder = world.node_with(patient).acquire("job").await.unwrap();
        let locks = world.node();
        let waiting = tokio::spawn(async move { locks.acquire("job").await });
        let mut side = world.server().connect().await;
        let started = Instant::now();
        while started.elapsed() < TTL * 2 {
            let kill = format!(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = '{}' and pid <> pg_backend_pid()",
                world.name()
            );
            execute(&mut side, &kill).await;
            sleep(TTL / 20).await;
        }
        assert!(!waiting.is_finished());
        tamper(&world, "job", "owner = null, expires_at = null").await;
        let lease = timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
        lease.release().await.unwrap();
        drop(holder);
    });
}

/// A shut-down while the request is in the world.
#[test]
fn a_lease_that_comes_through_after_a_shutdown_is_given_back() {
    everywhere(async |world| {
        let locks = world.node();
        let mut blocker = world.connect().await;
        execute(
            &mut blocker,
            "begin; lock table sqlock_leases in access exclusive mode",
        )
        .await;
        let asking = locks.clone();
        let asked = tokio::spawn(async move { asking.acquire("job").await });
        sleep(Duration::from_millis(300)).await;
        let closing = locks.clone();
        let shutdown = tokio::spawn(async move { closing.shutdown().await });
        sleep(Duration::from_millis(300)).await;
        execute(&mut blocker, "commit").await;
        let answer = timeout(PATIENCE, asked).await.unwrap().unwrap();
        assert!(matches!(answer, Err(Error::ShutDown { .. })), "{answer:?}");
        timeout(PATIENCE, shutdown).await.unwrap().unwrap().unwrap();
        let next = world.node().try_acquire("job").await.unwrap();
        next.expect("it was given back").release().await.unwrap();
    });
}
