//! Those who wait stand in line: by priority, and then by arrival.

use std::{sync::Arc, time::Duration};

use sqlock::{Error, Whose, ttl::TtlOptions};
use tokio::{
    sync::Mutex,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::{
    support::{PATIENCE, execute, join_all, run},
    tools::{database, node},
    waits::{FOREVER, QueueLocks, Way, World, patient, places, stand_in_line, until_queued},
};

/// Who was served, in order.
type Served = Arc<Mutex<Vec<String>>>;

/// Waits under a name, and passes the lock on as soon as it has it.
fn wait(locks: &QueueLocks, served: &Served, name: &str, priority: i16) -> JoinHandle<()> {
    let (locks, served, name) = (locks.clone(), Arc::clone(served), name.to_owned());
    tokio::spawn(async move {
        let lock = locks.lock("job").label(name.as_str()).priority(priority);
        let lease = lock.acquire().await.unwrap();
        served.lock().await.push(name);
        lease.release().await.unwrap();
    })
}

async fn all(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        timeout(PATIENCE, task).await.unwrap().unwrap();
    }
}

/// Over processes and within them, directly and through a pooler, woken and polling.
#[test]
fn who_came_first_is_served_first() {
    run(async || {
        for way in [Way::Direct, Way::Pooled] {
            let world = World::create(way).await;
            let polling = patient().poll_interval(Duration::from_millis(20));
            let nodes = [
                world.queueing(patient()),
                world.queueing(patient()),
                world.node(TtlOptions::new().leases(polling).queue()),
            ];
            let lease = nodes[0].acquire("job").await.unwrap();
            let served = Served::default();
            let mut tasks = Vec::new();
            let names = ["a", "b", "c", "d", "e", "f", "g"];
            for (number, name) in names.iter().enumerate() {
                tasks.push(wait(&nodes[number % 3], &served, name, 0));
                until_queued(&nodes[0], "job", number + 1).await;
            }
            lease.release().await.unwrap();
            all(tasks).await;
            assert_eq!(*served.lock().await, names, "{way:?}");
            world.until_waiting(0).await;
        }
    });
}

#[test]
fn a_higher_priority_goes_before() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let nodes = [world.queueing(patient()), world.queueing(patient())];
        let lease = nodes[0].acquire("job").await.unwrap();
        let served = Served::default();
        let mut tasks = Vec::new();
        let waiters = [
            ("a", 0),
            ("b", -5),
            ("c", 7),
            ("d", 0),
            ("e", 7),
            ("f", i16::MIN),
        ];
        for (number, (name, priority)) in waiters.iter().enumerate() {
            tasks.push(wait(&nodes[number / 3], &served, name, *priority));
            until_queued(&nodes[0], "job", number + 1).await;
        }
        let in_line: Vec<_> = places(&nodes[1], "job").await;
        let labels: Vec<_> = in_line
            .iter()
            .filter_map(|one| one.label.as_deref())
            .collect();
        assert_eq!(labels, ["c", "e", "a", "d", "b", "f"]);
        lease.release().await.unwrap();
        all(tasks).await;
        assert_eq!(*served.lock().await, labels);
    });
}

/// A waiter learns its place.
#[test]
fn a_waiter_learns_its_place() {
    run(async || {
        let world = World::create(Way::Pooled).await;
        let (one, other) = (world.queueing(patient()), world.queueing(patient()));
        assert_eq!(places(&one, "job").await, []);
        let lease = one.acquire("job").await.unwrap();
        assert_eq!(places(&one, "job").await, [], "a holder does not wait");
        let served = Served::default();
        let mut tasks = vec![wait(&one, &served, "first", 0)];
        until_queued(&one, "job", 1).await;
        tasks.push(wait(&other, &served, "second", 0));
        until_queued(&one, "job", 2).await;
        let queue = places(&other, "job").await;
        let seen: Vec<_> = queue
            .iter()
            .map(|one| (one.place, one.whose, one.label.as_deref().unwrap()))
            .collect();
        assert_eq!(
            seen,
            [(1, Whose::Theirs, "first"), (2, Whose::Ours, "second")]
        );
        assert_eq!(queue[0].pid, Some(i64::from(std::process::id())));
        assert!(queue[0].since <= queue[1].since);
        lease.release().await.unwrap();
        all(tasks).await;
    });
}

/// Somebody stands in line and does not look yet: nobody passes.
#[test]
fn a_newcomer_does_not_pass() {
    run(async || {
        let world = World::create(Way::Pooled).await;
        let locks = world.queueing(patient());
        locks.acquire("job").await.unwrap().release().await.unwrap();
        let mut side = world.database.connect().await;
        stand_in_line(&mut side, "job", 1, "1 h").await;
        assert!(locks.try_acquire("job").await.unwrap().is_none());
        let keys = ["free", "job"];
        let several = locks.lock_all(keys).try_acquire().await;
        assert!(several.unwrap().is_none());
        let soon = Duration::from_millis(300);
        let error = locks.acquire_within("job", soon).await.unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
        let free = locks.try_acquire("free").await.unwrap();
        free.expect("nobody waits for it").release().await.unwrap();

        // one with a higher priority goes before, and is not held up
        let before = locks.lock("job").priority(1).within(PATIENCE);
        before.acquire().await.unwrap().release().await.unwrap();
        execute(&mut side, "delete from sqlock_leases_waiters").await;
        let lease = locks.try_acquire("job").await.unwrap();
        lease.expect("nobody waits").release().await.unwrap();
    });
}

/// One who stops waiting makes room at once, though it would be taken to be alive for long.
#[test]
fn a_waiter_that_is_dropped_leaves_at_once() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let leases = || patient().waiter_ttl(FOREVER);
        let (one, other) = (world.queueing(leases()), world.queueing(leases()));
        let held = one.acquire("held").await.unwrap();
        // first in line for a lock that is free, and it does not get the other
        let leaving = {
            let one = one.clone();
            tokio::spawn(async move { one.acquire_all(["held", "job"]).await.map(drop) })
        };
        until_queued(&one, "job", 1).await;
        let served = Served::default();
        let staying = wait(&other, &served, "staying", 0);
        world.until_listening(3).await;
        assert!(other.try_acquire("job").await.unwrap().is_none());
        assert!(!staying.is_finished());
        leaving.abort();
        all(vec![staying]).await;
        world.until_waiting(0).await;
        held.release().await.unwrap();
    });
}

async fn locks_once(locks: &QueueLocks) {
    locks.acquire("job").await.unwrap().release().await.unwrap();
}

/// With several keys too, those who wait for each other's are all served.
#[test]
fn overlapping_requests_are_served_without_a_poll() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let mut tasks = JoinSet::new();
        for number in 0..4_usize {
            let locks = world.queueing(patient());
            tasks.spawn(async move {
                let names = ["a", "b", "c"];
                for round in 0..12 {
                    let (first, second) = (number + round, number + 2 * round + 1);
                    let keys = [names[first % 3], names[second % 3]];
                    let lease = locks.lock_all(keys).acquire().await.unwrap();
                    lease.release().await.unwrap();
                }
            });
        }
        join_all(tasks).await;
        world.until_waiting(0).await;
    });
}

/// A table from before goes on working, and what is missing is said.
#[test]
fn a_table_without_a_queue_serves_those_who_ask_for_none() {
    run(async || {
        let database = database().await;
        let plain = node(&database);
        let options = || TtlOptions::new().leases(patient()).queue();
        let backend = options().connect(&database.url()).unwrap();
        let locks = sqlock::Locks::new(backend);
        let error = locks.try_acquire("job").await.unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("sqlock_leases_waiters"), "{text}");
        assert!(text.contains("create_table"), "{text}");
        plain.acquire("job").await.unwrap().release().await.unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..20 {
            let backend = options().connect(&database.url()).unwrap();
            tasks.spawn(async move { backend.create_table().await });
        }
        for outcome in join_all(tasks).await {
            outcome.unwrap();
        }
        locks_once(&locks).await;
        plain.acquire("job").await.unwrap().release().await.unwrap();
    });
}
