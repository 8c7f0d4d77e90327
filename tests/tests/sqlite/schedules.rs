//! Random schedules of everything that can happen to a lease of a file.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use sqlock::{
    LockGuard, Locks, SqliteBackend,
    sqlite::{LeaseOptions, SqliteOptions, TtlHeld},
};
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};

use crate::tools::{place, raw, run};

const CLIENTS: usize = 4;
const TTL: Duration = Duration::from_millis(500);

/// How many are tried: `SQLOCK_SCHEDULES`, or enough for every day.
fn schedules() -> usize {
    let wanted = std::env::var("SQLOCK_SCHEDULES").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(100)
}

type Lease = LockGuard<TtlHeld>;

struct World {
    path: PathBuf,
    clients: Vec<Locks<SqliteBackend>>,
    grants: AtomicUsize,
    losses: AtomicUsize,
}

/// Those who were granted one key.
#[derive(Default)]
struct Believers {
    leases: Mutex<Vec<Arc<Lease>>>,
    last_token: AtomicI64,
}

impl Believers {
    /// At the moment of a grant nobody else may believe in the lock, and the token is the highest.
    fn granted(&self, lease: Lease, what: &str) -> Arc<Lease> {
        let lease = Arc::new(lease);
        let token = lease.token().expect("a token").get();
        let mut leases = self.leases.lock().expect("no panic");
        let two_believe = leases
            .iter()
            .any(|other| other.is_valid() && lease.is_valid());
        assert!(!two_believe, "{what}: two believe");
        let last = self.last_token.swap(token, Ordering::SeqCst);
        assert!(last < token, "{what}: token {token} after {last}");
        leases.push(Arc::clone(&lease));
        lease
    }

    /// What is given back is believed in by nobody.
    fn forget(&self, lease: Arc<Lease>) -> Option<Lease> {
        let mut leases = self.leases.lock().expect("no panic");
        leases.retain(|other| !Arc::ptr_eq(other, &lease));
        Arc::into_inner(lease)
    }
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
        grants: AtomicUsize::new(0),
        losses: AtomicUsize::new(0),
    });
    let disturbance = tokio::spawn(disturb(Arc::clone(&world)));
    let room = Arc::new(Semaphore::new(50));
    let mut tasks = JoinSet::new();
    for seed in 0..schedules() {
        let room = Arc::clone(&room).acquire_owned().await.expect("it is open");
        let world = Arc::clone(&world);
        tasks.spawn(async move {
            schedule(&world, seed).await;
            drop(room);
        });
    }
    tasks.join_all().await;
    disturbance.abort();
    let count = |what: &AtomicUsize| what.load(Ordering::Relaxed);
    let (grants, losses) = (count(&world.grants), count(&world.losses));
    println!(
        "{} schedules: {grants} grants, {losses} losses",
        schedules()
    );
    // that it is no empty test
    assert!(grants > schedules() / 2 && losses > 0);
}

/// One key, and what its clients do with it.
async fn schedule(world: &Arc<World>, seed: usize) {
    let believers = Arc::new(Believers::default());
    let mut tasks = JoinSet::new();
    for actor in 0..3 {
        let (world, believers) = (Arc::clone(world), Arc::clone(&believers));
        tasks.spawn(async move {
            let mut random = StdRng::seed_from_u64((seed * 100 + actor) as u64);
            for step in 0..4 {
                let what = format!("seed {seed}, actor {actor}, step {step}");
                act(&world, &believers, &mut random, seed, &what).await;
            }
        });
    }
    tasks.join_all().await;
}

async fn act(world: &World, believers: &Believers, random: &mut StdRng, seed: usize, what: &str) {
    let key = format!("key-{seed}");
    let client = &world.clients[random.random_range(0..CLIENTS)];
    let wait = Duration::from_millis(random.random_range(0..1_500));
    let Ok(lease) = client.acquire_within(key.as_str(), wait).await else {
        return;
    };
    world.grants.fetch_add(1, Ordering::Relaxed);
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
        world.losses.fetch_add(1, Ordering::Relaxed);
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
