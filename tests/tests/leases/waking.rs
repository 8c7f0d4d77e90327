//! Those who wait are woken by a release: none of their polls comes in the time of a test.

use std::time::Duration;

use sqlock::ttl::TtlOptions;
use sqlock_tests::eventually;
use sqlx::postgres::PgListener;
use tokio::{task::JoinSet, time::timeout};

use crate::{
    support::{PATIENCE, execute, join_all, run},
    waits::{FOREVER, Way, World, patient, stand_in_line},
};

const CHANNEL: &str = "sqlock_leases";

#[test]
fn a_release_wakes_a_waiter() {
    run(async || {
        for way in [Way::Direct, Way::Pooled] {
            let world = World::create(way).await;
            let (one, other) = (world.listening(patient()), world.listening(patient()));
            let lease = one.acquire("job").await.unwrap();
            let waiting = tokio::spawn(async move { other.acquire("job").await });
            world.until_listening(1).await;
            lease.release().await.unwrap();
            let lease = timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
            // with the grant the waiter's row went
            world.until_waiting(0).await;
            let other = world.listening(patient());
            let waiting = tokio::spawn(async move { other.acquire("job").await });
            world.until_listening(1).await;
            drop(lease);
            drop(timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap());
        }
    });
}

/// A node that cannot listen itself tells those who do.
#[test]
fn a_node_behind_a_pooler_alone_tells_of_its_releases() {
    run(async || {
        let world = World::create(Way::Pooled).await;
        let one = world.node(TtlOptions::new().leases(patient()).notify());
        let other = world.listening(patient());
        let lease = one.acquire("job").await.unwrap();
        let waiting = tokio::spawn(async move { other.acquire("job").await });
        world.until_listening(1).await;
        assert_eq!(world.listeners().await.len(), 1, "of the waiter alone");
        lease.release().await.unwrap();
        drop(timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap());
    });
}

/// The release that comes between a waiter's look and its sleep would be missed by a wrong order:
/// each of these would then wait for ten minutes.
#[test]
fn no_release_is_missed() {
    run(async || {
        for way in [Way::Direct, Way::Pooled] {
            let world = World::create(way).await;
            let mut tasks = JoinSet::new();
            for _ in 0..5 {
                let locks = world.listening(patient());
                tasks.spawn(async move {
                    for _ in 0..20 {
                        let lease = locks.acquire("job").await.unwrap();
                        lease.release().await.unwrap();
                    }
                });
            }
            join_all(tasks).await;
        }
    });
}

/// The same at the one moment that matters: the waiter is about to be known, and is not yet.
#[test]
fn a_release_before_a_waiter_is_known_is_not_missed() {
    run(async || {
        for way in [Way::Direct, Way::Pooled] {
            let world = World::create(way).await;
            let mut side = world.database.connect().await;
            execute(
                &mut side,
                "create function linger() returns trigger language plpgsql as
                   $$ begin perform pg_sleep(2); return null; end $$;
                 create constraint trigger linger after insert on sqlock_leases_waiters
                   deferrable initially deferred for each row execute function linger()",
            )
            .await;
            let (one, other) = (world.listening(patient()), world.listening(patient()));
            let lease = one.acquire("job").await.unwrap();
            let waiting = tokio::spawn(async move { other.acquire("job").await });
            eventually(PATIENCE, async || {
                let backends = world.database.backends().await;
                let mut waits = backends.iter().filter_map(|one| one.wait_event.as_deref());
                waits.any(|event| event == "PgSleep")
            })
            .await;
            lease.release().await.unwrap();
            drop(timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap());
        }
    });
}

/// What a plain connection hears of the channel until it is told that this is all.
async fn heard(world: &World, listener: &mut PgListener) -> Vec<String> {
    let mut side = world.database.connect().await;
    execute(&mut side, &format!("notify {CHANNEL}, 'that is all'")).await;
    let mut heard = Vec::new();
    loop {
        let next = timeout(PATIENCE, listener.recv()).await;
        let payload = next.unwrap().unwrap().payload().to_owned();
        if payload == "that is all" {
            return heard;
        }
        heard.push(payload);
    }
}

async fn listener(world: &World) -> PgListener {
    let mut listener = PgListener::connect(&world.database.url()).await.unwrap();
    listener.listen(CHANNEL).await.unwrap();
    listener
}

#[test]
fn a_release_notifies_nobody_where_nobody_listens() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let mut listener = listener(&world).await;
        let one = world.listening(patient());
        for _ in 0..3 {
            one.acquire("job").await.unwrap().release().await.unwrap();
        }
        // one who is taken to be dead, and one who waits for something else
        let mut side = world.database.connect().await;
        stand_in_line(&mut side, "job", 1, "-1 s").await;
        stand_in_line(&mut side, "other", 2, "1 h").await;
        one.acquire("job").await.unwrap().release().await.unwrap();
        assert_eq!(heard(&world, &mut listener).await, [""; 0]);
        stand_in_line(&mut side, "job", 3, "1 h").await;
        one.acquire("job").await.unwrap().release().await.unwrap();
        let heard = heard(&world, &mut listener).await;
        assert!(heard.len() == 1 && heard[0].len() == 16, "{heard:?}");
    });
}

/// Those who wait without listening, in a queue or not, cost nobody a notification.
#[test]
fn without_a_listener_there_is_no_notification() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let mut listener = listener(&world).await;
        let often = || patient().poll_interval(Duration::from_millis(50));
        let plain = || world.node(TtlOptions::new().leases(often()));
        let queueing = || world.node(TtlOptions::new().leases(often()).queue());
        let mut tasks = JoinSet::new();
        for _ in 0..3 {
            let (plain, queueing) = (plain(), queueing());
            tasks.spawn(async move {
                for _ in 0..3 {
                    let lease = plain.acquire("one").await.unwrap();
                    lease.release().await.unwrap();
                    let lease = queueing.acquire("two").await.unwrap();
                    lease.release().await.unwrap();
                }
            });
        }
        join_all(tasks).await;
        assert_eq!(heard(&world, &mut listener).await, [""; 0]);
    });
}

/// A try that meets waiters of its own process does not wait for their next look.
#[test]
fn a_try_beside_patient_waiters_does_not_wait() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let (one, other) = (world.listening(patient()), world.listening(patient()));
        let lease = one.acquire("job").await.unwrap();
        let locks = other.clone();
        let waiting = tokio::spawn(async move { locks.acquire("job").await });
        world.until_listening(1).await;
        let refused = timeout(PATIENCE, other.try_acquire("job")).await.unwrap();
        assert!(refused.unwrap().is_none());
        lease.release().await.unwrap();
        drop(timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap());
    });
}

/// A timeout takes the waiter's row with it.
#[test]
fn who_gives_up_is_forgotten() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let (one, other) = (world.listening(patient()), world.listening(patient()));
        let lease = one.acquire("job").await.unwrap();
        let locks = other.clone();
        let waiting = tokio::spawn(async move { locks.acquire_within("job", FOREVER).await });
        world.until_listening(1).await;
        waiting.abort();
        world.until_waiting(0).await;
        let soon = Duration::from_millis(100);
        other.acquire_within("job", soon).await.unwrap_err();
        world.until_waiting(0).await;
        lease.release().await.unwrap();
    });
}
