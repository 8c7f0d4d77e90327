//! Renewal, expiry, take-over.

use std::time::Duration;

use sqlock::{Error, LossCause};
use sqlock_tests::eventually;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    support::{PATIENCE, ask, execute},
    tools::{TTL, options, seconds_left, tamper},
    world::everywhere,
};

/// Case 26: work that outlives the TTL keeps its lease, and its release is a release.
#[test]
fn a_lease_is_renewed_for_as_long_as_it_is_held() {
    everywhere(async |world| {
        let (one, other) = (world.node(), world.node());
        let lease = one.acquire("job").await.unwrap();
        let started = Instant::now();
        while started.elapsed() < TTL * 4 {
            assert!(lease.is_valid());
            assert!(other.try_acquire("job").await.unwrap().is_none());
            sleep(TTL / 10).await;
        }
        lease.release().await.unwrap();
        assert!(other.try_acquire("job").await.unwrap().is_some());
    });
}

/// Cases 19 and 20: a renewal is of one's own lease only.
#[test]
fn another_holder_is_never_renewed_or_released() {
    everywhere(async |world| {
        let lease = world.node().acquire("job").await.unwrap();
        tamper(&world, "job", "owner = 'thief', expires_at = now() + '1 h'").await;
        let lost = timeout(PATIENCE, lease.lost()).await.unwrap();
        assert!(matches!(
            lost,
            Error::Lost {
                cause: LossCause::TakenOver,
                ..
            }
        ));
        assert!(!lease.is_valid());
        assert!(matches!(lease.release().await, Err(Error::Lost { .. })));
        sleep(TTL).await;
        let mut connection = world.connect().await;
        let owner: String = ask(&mut connection, "select owner from sqlock_leases").await;
        assert_eq!(owner, "thief");
        assert!(seconds_left(&mut connection, "job").await > 3500.0);
    });
}

/// Case 21: what has run out is not revived, though nobody took it.
#[test]
fn an_expired_lease_is_lost_and_stays_expired() {
    everywhere(async |world| {
        let lease = world.node().acquire("job").await.unwrap();
        tamper(&world, "job", "expires_at = now() - interval '1 ms'").await;
        let lost = timeout(PATIENCE, lease.lost()).await.unwrap();
        assert!(matches!(
            lost,
            Error::Lost {
                cause: LossCause::Expired,
                ..
            }
        ));
        let mut connection = world.connect().await;
        let is_free: bool = ask(
            &mut connection,
            "select owner is null or expires_at < now() from sqlock_leases",
        )
        .await;
        assert!(is_free);
    });
}

/// The row is removed under the holder's hands.
#[test]
fn a_removed_row_is_a_loss_and_tokens_go_on() {
    everywhere(async |world| {
        let locks = world.node();
        let lease = locks.acquire("job").await.unwrap();
        let before = lease.token().unwrap();
        let mut connection = world.connect().await;
        execute(&mut connection, "delete from sqlock_leases").await;
        let lost = timeout(PATIENCE, lease.lost()).await.unwrap();
        assert!(matches!(
            lost,
            Error::Lost {
                cause: LossCause::Removed,
                ..
            }
        ));
        let next = locks.acquire("job").await.unwrap();
        assert!(next.token().unwrap() > before);
    });
}

/// Case 22: the wait for a locked row does not count against the lease.
#[test]
fn a_lease_is_not_born_expired() {
    everywhere(async |world| {
        let locks = world.node_with(options().ttl(Duration::from_secs(4)));
        drop(locks.acquire("job").await.unwrap());
        let mut blocker = world.connect().await;
        eventually(PATIENCE, async || {
            ask(
                &mut blocker,
                "select owner is null from sqlock_leases where name = 'job'",
            )
            .await
        })
        .await;
        execute(&mut blocker, "begin; select from sqlock_leases for update").await;
        let waiting = tokio::spawn(async move { locks.acquire("job").await });
        sleep(Duration::from_secs(2)).await;
        execute(&mut blocker, "commit").await;
        let lease = waiting.await.unwrap().unwrap();
        let left = seconds_left(&mut blocker, "job").await;
        assert!(left > 3.0, "{left} s are left of 4");
        assert!(lease.is_valid());
        assert!(lease.remaining() > Duration::from_secs(2));
    });
}

/// Case 23: the holder's own deadline is before the database's, renewal by renewal.
#[test]
fn the_holder_gives_up_before_the_database_does() {
    everywhere(async |world| {
        let lease = world.node().acquire("job").await.unwrap();
        let mut connection = world.connect().await;
        for _ in 0..40 {
            let before = lease.remaining();
            let by_the_database = seconds_left(&mut connection, "job").await;
            let after = lease.remaining();
            // the later of the two looks is the holder's, so that a slow machine does not matter;
            // with a renewal between them they are not of the same lease
            if after <= before {
                let by_the_holder = after.as_secs_f64();
                assert!(
                    by_the_holder <= by_the_database,
                    "{by_the_holder} {by_the_database}"
                );
            }
            sleep(TTL / 20).await;
        }
        lease.check().unwrap();
    });
}

/// Cases 24 and 25: renewals that fail, and answers that are lost, are made up for.
#[test]
fn a_lease_survives_connections_that_break_all_the_time() {
    everywhere(async |world| {
        let lease = world.node().acquire("job").await.unwrap();
        let token = lease.token();
        let mut side = world.server().connect().await;
        let started = Instant::now();
        while started.elapsed() < TTL * 3 {
            let kill = format!(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = '{}' and pid <> pg_backend_pid()",
                world.name()
            );
            execute(&mut side, &kill).await;
            sleep(TTL / 8).await;
        }
        lease.check().unwrap();
        assert_eq!(lease.token(), token);
        eventually(PATIENCE, async || lease.remaining() > TTL / 2).await;
    });
}

/// A database that stays away takes the lease with it, at the holder's own deadline.
#[test]
fn without_renewals_the_lease_ends_at_its_deadline() {
    everywhere(async |world| {
        let lease = world.node().acquire("job").await.unwrap();
        let mut blocker = world.connect().await;
        execute(
            &mut blocker,
            "begin; lock table sqlock_leases in access exclusive mode",
        )
        .await;
        let left = lease.remaining();
        let lost = timeout(left + PATIENCE, lease.lost()).await.unwrap();
        assert!(matches!(
            lost,
            Error::Lost {
                cause: LossCause::Expired,
                ..
            }
        ));
        assert!(!lease.is_valid());
    });
}

/// Case 28: the application's default isolation does not matter.
#[test]
fn a_serializable_default_does_not_fail_acquires() {
    everywhere(async |world| {
        let mut connection = world.connect().await;
        let alter = format!(
            "alter database \"{}\" set default_transaction_isolation = serializable",
            world.name()
        );
        execute(&mut connection, &alter).await;
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let locks = world.node();
            tasks.spawn(async move {
                for _ in 0..15 {
                    locks.acquire("hot").await.unwrap().release().await.unwrap();
                }
            });
        }
        tasks.join_all().await;
    });
}

/// A job that is done before the others look.
#[test]
fn hold_at_least_keeps_the_key_after_the_release() {
    everywhere(async |world| {
        let (one, other) = (world.node(), world.node());
        let started = Instant::now();
        let lease = one.lock("cron").hold_at_least(TTL).await.unwrap();
        lease.release().await.unwrap();
        assert!(other.try_acquire("cron").await.unwrap().is_none());
        let next = other.acquire_within("cron", PATIENCE).await.unwrap();
        assert!(started.elapsed() >= TTL - Duration::from_millis(50));
        drop(next);
    });
}
