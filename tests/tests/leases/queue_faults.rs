//! What becomes of the places in a queue when things go wrong.

use std::time::Duration;

use sqlock_tests::{PostgresServer, Stop};
use tokio::{
    runtime::{self, Runtime},
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};

use crate::{
    support::{PATIENCE, ask, execute, run},
    tools::Lease,
    waits::{FOREVER, QueueLocks, Way, World, patient, places, until_queued},
};

fn waiter(locks: &QueueLocks) -> JoinHandle<Lease> {
    let locks = locks.clone();
    tokio::spawn(async move { locks.acquire("job").await.unwrap() })
}

async fn served(waiter: JoinHandle<Lease>) -> Lease {
    timeout(PATIENCE, waiter).await.unwrap().unwrap()
}

/// A process that is stopped while it waits first in line.
async fn a_waiter_that_stands_still(world: &World, ttl: Duration) -> (Runtime, JoinHandle<Lease>) {
    let locks = world.database.url();
    spawn_blocking(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap();
        let options = sqlock::ttl::TtlOptions::new().leases(patient().waiter_ttl(ttl));
        let mut waiting = None;
        runtime.block_on(async {
            let locks = sqlock::Locks::new(options.queue().connect(&locks).unwrap());
            waiting = Some(waiter(&locks));
            until_queued(&locks, "job", 1).await;
        });
        (runtime, waiting.unwrap())
    })
    .await
    .unwrap()
}

/// Those behind one that died go on when it has given no sign of life for long enough, and without
/// a poll: they know when that is. One that only stood still comes back to its place.
#[test]
fn a_dead_waiter_leaves_and_comes_back_to_its_place() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let holder = world.queueing(patient());
        let lease = holder.acquire("job").await.unwrap();
        let ttl = Duration::from_secs(4);
        let (standing, first) = a_waiter_that_stands_still(&world, ttl).await;
        let (second, third) = (world.queueing(patient()), world.queueing(patient()));
        let next = waiter(&second);
        lease.release().await.unwrap();
        let lease = served(next).await;
        // it is not in line any more, as long as it stands still
        let last = waiter(&third);
        until_queued(&holder, "job", 1).await;
        let moved = spawn_blocking(move || {
            let lease = standing.block_on(async {
                until_queued(&second, "job", 2).await;
                lease.release().await.unwrap();
                served(first).await
            });
            assert!(!last.is_finished());
            standing.block_on(async { lease.release().await.unwrap() });
            standing.shutdown_background();
            last
        });
        served(moved.await.unwrap()).await.release().await.unwrap();
    });
}

/// Signs of life, looks that find nothing, and connections that break leave the place as it is.
#[test]
fn a_waiter_keeps_its_place() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let holder = world.queueing(patient());
        let lease = holder.acquire("job").await.unwrap();
        let leases = patient()
            .poll_interval(Duration::from_millis(20))
            .waiter_ttl(Duration::from_secs(6));
        let (one, other) = (world.queueing(leases.clone()), world.queueing(leases));
        let first = waiter(&one);
        until_queued(&holder, "job", 1).await;
        let second = waiter(&other);
        until_queued(&holder, "job", 2).await;
        let before = tickets(&world).await;
        let mut side = world.database.server().connect().await;
        for _ in 0..10 {
            let kill = format!(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = '{}' and pid <> pg_backend_pid()",
                world.database.name()
            );
            execute(&mut side, &kill).await;
            sleep(Duration::from_millis(100)).await;
        }
        // a sign of life came through since
        let mut connection = world.database.connect().await;
        let alive = "select count(*) from sqlock_leases_waiters
                     where expires_at > since + interval '6.5 s'";
        timeout(PATIENCE, async {
            while ask::<i64>(&mut connection, alive).await < 2 {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap();
        assert_eq!(tickets(&world).await, before);
        lease.release().await.unwrap();
        let lease = served(first).await;
        assert!(!second.is_finished());
        lease.release().await.unwrap();
        served(second).await.release().await.unwrap();
    });
}

async fn tickets(world: &World) -> Vec<i64> {
    let mut side = world.database.connect().await;
    let statement = "select array_agg(ticket order by ticket) from sqlock_leases_waiters";
    ask(&mut side, statement).await
}

/// A crash of the server empties the table of those who wait, and they come back to their places.
#[test]
fn places_outlast_a_crash_of_the_server() {
    run(async || {
        let server = PostgresServer::start(&[]).await;
        let world = World::on_server(&server).await;
        let leases = patient().poll_interval(Duration::from_millis(50));
        let leases = leases.outage_limit(FOREVER);
        let nodes: Vec<_> = (0..3).map(|_| world.queueing(leases.clone())).collect();
        let holder = world.queueing(leases);
        let lease = holder.acquire("job").await.unwrap();
        let mut waiters = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            waiters.push(waiter(node));
            until_queued(&holder, "job", number + 1).await;
        }
        let before = tickets(&world).await;
        server.stop(Stop::Immediate).await;
        server.start_again().await;
        timeout(PATIENCE, async {
            while places(&world.queueing(patient()), "job").await.len() < 3 {
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await
        .unwrap();
        assert_eq!(tickets(&world).await, before);
        // its own connection may be one from before
        drop(lease);
        for waiter in waiters {
            served(waiter).await.release().await.unwrap();
        }
    });
}
