//! Random schedules of everything that can happen to a lease of a file.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use sqlock::{
    Locks, SqliteBackend,
    sqlite::{LeaseOptions, SqliteOptions},
};
use sqlock_tests::{Believers, Tally, run_schedules, schedules_or};
use tokio::{task::JoinSet, time::sleep};

use crate::tools::{place, raw, run};

const CLIENTS: usize = 4;
const TTL: Duration = Duration::from_millis(500);

struct World {
    path: PathBuf,
    clients: Vec<Locks<SqliteBackend>>,
    tally: Tally,
}

/// Acquire, renew, release, drop, sweep and lock the file for too long, by four clients: at no time do
/// two of them believe that they hold a lease, and tokens never go back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_never_believe_and_tokens_never_go_back() {
    let (_directory, path) = place();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let leases = LeaseOptions::new()
            .ttl(TTL)
            .poll_interval(Duration::from_millis(30));
        let backend = SqliteOptions::new().leases(leases).open(&path).await;
        clients.push(Locks::new(backend.unwrap()));
    }
    let world = Arc::new(World {
        path,
        clients,
        tally: Tally::default(),
    });
    let disturbance = tokio::spawn(disturb(Arc::clone(&world)));
    let count = schedules_or(100);
    run_schedules(0..count as u64, 50, |seed| {
        let world = Arc::clone(&world);
        async move { schedule(&world, seed).await }
    })
    .await;
    disturbance.abort();
    let (grants, losses) = world.tally.counts();
    println!("{count} schedules: {grants} grants, {losses} losses");
    // that it is no empty test
    assert!(grants > count / 2 && losses > 0);
}

/// One key, and what its clients do with it.
async fn schedule(world: &Arc<World>, seed: u64) {
    let believers = Arc::new(Believers::default());
    let mut tasks = JoinSet::new();
    for actor in 0..3 {
        let (world, believers) = (Arc::clone(world), Arc::clone(&believers));
        tasks.spawn(async move {
            let mut random = StdRng::seed_from_u64(seed * 100 + actor);
            for step in 0..4 {
                let what = format!("seed {seed}, actor {actor}, step {step}");
                act(&world, &believers, &mut random, seed, &what).await;
            }
        });
    }
    tasks.join_all().await;
}

async fn act(world: &World, believers: &Believers, random: &mut StdRng, seed: u64, what: &str) {
    let key = format!("key-{seed}");
    let client = &world.clients[random.random_range(0..CLIENTS)];
    let wait = Duration::from_millis(random.random_range(0..1_500));
    let Ok(lease) = client.acquire_within(key.as_str(), wait).await else {
        return;
    };
    world.tally.grant();
    let lease = believers.granted(lease, what);
    match random.random_range(0..8) {
        0..=2 => sleep(Duration::from_millis(random.random_range(0..100))).await,
        3..=5 => sleep(TTL * 2).await,
        // it is never given back by hand
        6 => {
            drop(believers.forget(lease));
            return;
        }
        _ => {}
    }
    if lease.check().is_err() {
        world.tally.loss();
    }
    if let Some(lease) = believers.forget(lease) {
        lease.release().await.ok();
    }
}

/// The file is locked for longer than a lease lasts, and unused rows go.
async fn disturb(world: Arc<World>) {
    let mut side = raw(&world.path).await;
    loop {
        sleep(TTL * 3).await;
        run(&mut side, "begin immediate").await;
        sleep(TTL * 3 / 2).await;
        run(&mut side, "rollback").await;
        let swept = world.clients[0].backend().sweep(TTL).await;
        drop(swept);
    }
}
