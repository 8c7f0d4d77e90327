//! The connections on which processes listen.

use std::time::Duration;

use sqlock::{
    Error,
    ttl::{LeaseOptions, TtlOptions},
};
use sqlock_tests::{PgBouncer, PoolMode, eventually};
use tokio::time::timeout;

use crate::{
    support::{PATIENCE, run},
    waits::{Way, World, patient},
};

/// It is there while somebody waits, and not longer.
#[test]
fn a_process_listens_only_while_it_has_waiters() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let (one, other) = (world.listening(patient()), world.listening(patient()));
        let lease = one.acquire("job").await.unwrap();
        assert!(other.try_acquire("job").await.unwrap().is_none());
        assert!(world.listeners().await.is_empty());
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let locks = other.clone();
                tokio::spawn(async move { locks.acquire("job").await.map(drop) })
            })
            .collect();
        world.until_listening(1).await;
        assert_eq!(world.listeners().await.len(), 1);
        lease.release().await.unwrap();
        for waiter in waiters {
            timeout(PATIENCE, waiter).await.unwrap().unwrap().unwrap();
        }
        eventually(PATIENCE, async || world.listeners().await.is_empty()).await;
        // and again
        let lease = one.acquire("job").await.unwrap();
        let waiting = tokio::spawn(async move { other.acquire("job").await });
        world.until_listening(1).await;
        lease.release().await.unwrap();
        drop(timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap());
    });
}

/// With its listener a process loses no lock and no waiter.
#[test]
fn a_listener_that_is_lost_comes_back() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let (one, other) = (world.listening(patient()), world.listening(patient()));
        let lease = one.acquire("job").await.unwrap();
        let kept = other.acquire("kept").await.unwrap();
        let locks = other.clone();
        let waiting = tokio::spawn(async move { locks.acquire("job").await });
        world.until_listening(1).await;
        for _ in 0..2 {
            let before = world.listeners().await;
            for pid in &before {
                world.database.terminate(*pid).await;
            }
            eventually(PATIENCE, async || {
                let now = world.listeners().await;
                now.len() == 1 && now != before
            })
            .await;
        }
        // whenever that is: before it listens, it looks; after that, it is told
        lease.release().await.unwrap();
        drop(timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap());
        assert!(kept.is_valid());
        kept.release().await.unwrap();
    });
}

/// `LISTEN` through a transaction pooler does nothing: that is told, and the polls go on.
#[test]
fn a_way_through_a_transaction_pooler_is_told_and_polls_go_on() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let server = world.database.server();
        let pooler = PgBouncer::start(server, PoolMode::Transaction).await;
        let through = world.database.url_through(&pooler);
        let often = || patient().poll_interval(Duration::from_millis(50));
        let leases = || often().statement_limit(Duration::from_secs(3));
        let deaf = |leases: LeaseOptions| {
            let options = TtlOptions::new().leases(leases);
            world.node(options.listen_on(through.as_str()))
        };
        let (one, other) = (deaf(leases()), deaf(leases()));
        let lease = one.acquire("job").await.unwrap();
        let waiting = tokio::spawn(async move { other.acquire("job").await });
        let error = one.backend().check_listening().await.unwrap_err();
        let is_option =
            matches!(&error, Error::InvalidOption { option, .. } if *option == "listen_on");
        assert!(is_option, "{error:?}");
        assert!(error.to_string().contains("pooler"), "{error}");
        lease.release().await.unwrap();
        drop(timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap());
    });
}

#[test]
fn a_direct_way_is_found_good() {
    run(async || {
        let world = World::create(Way::Pooled).await;
        let locks = world.listening(patient());
        locks.backend().check_listening().await.unwrap();
        let plain = world.node(TtlOptions::new());
        let error = plain.backend().check_listening().await.unwrap_err();
        assert!(matches!(error, Error::InvalidOption { .. }), "{error:?}");
        eventually(PATIENCE, async || world.listeners().await.is_empty()).await;
    });
}

/// Nobody's password is shown, and a wrong URL is refused before anything is sent.
#[test]
fn the_url_is_looked_at_and_not_shown() {
    let options = TtlOptions::new().listen_on("postgres://me:secret@127.0.0.1/x");
    assert!(!format!("{options:?}").contains("secret"));
    let options = TtlOptions::new().listen_on("mysql://me:secret@127.0.0.1/x");
    let error = options.connect("postgres://me@127.0.0.1/x").unwrap_err();
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}
