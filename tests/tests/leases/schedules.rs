//! Random schedules of everything that can happen to a lease.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use sqlock::ttl::{Protocol, TtlOptions};
use sqlock_tests::TestDatabase;
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};

use crate::{
    support::{ask, execute},
    tools::{Lease, LeaseLocks, create_table, locks, options},
    world::pooler,
};

const CLIENTS: usize = 8;
const TTL: Duration = Duration::from_millis(400);

/// How many are tried: `SQLOCK_SCHEDULES`, or enough for every day.
fn schedules() -> usize {
    let wanted = std::env::var("SQLOCK_SCHEDULES").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(1_000)
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
        for other in leases.iter() {
            assert!(
                !(other.is_valid() && lease.is_valid()),
                "{what}: two believe"
            );
        }
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

struct World {
    database: TestDatabase,
    clients: Vec<LeaseLocks>,
    grants: AtomicUsize,
    losses: AtomicUsize,
}

/// Acquire, renew, pause, release, sweep, kill and reconnect, by eight clients, half of them through
/// a pooler: at no time do two of them believe that they hold a lease, and tokens never go back.
#[test]
fn two_never_believe_and_tokens_never_go_back() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let database = TestDatabase::create().await;
        create_table(&database).await;
        let leases = || options().ttl(TTL).poll_interval(Duration::from_millis(20));
        let pooler = pooler(&database).await;
        let ways = [
            (database.url(), Protocol::Simple),
            (database.url_through(&pooler), Protocol::Simple),
            (database.url(), Protocol::Prepared),
            (database.url_through(&pooler), Protocol::Simple),
        ];
        let clients = ways.iter().cycle().take(CLIENTS);
        let clients = clients.map(|(url, protocol)| {
            let options = TtlOptions::new().protocol(*protocol);
            locks(options.leases(leases()), url)
        });
        let world = Arc::new(World {
            clients: clients.collect(),
            database,
            grants: AtomicUsize::new(0),
            losses: AtomicUsize::new(0),
        });
        let disturbance = tokio::spawn(disturb(Arc::clone(&world)));
        let room = Arc::new(Semaphore::new(150));
        let mut tasks = JoinSet::new();
        for seed in 0..schedules() {
            let room = Arc::clone(&room).acquire_owned().await.expect("it is open");
            let world = Arc::clone(&world);
            tasks.spawn(async move {
                schedule(&world, u64::try_from(seed).expect("it fits")).await;
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
        // much less than there are on an idle machine: that it is no empty test
        assert!(grants > schedules() / 2 && losses > schedules() / 100);
    });
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
    world.grants.fetch_add(1, Ordering::Relaxed);
    let lease = believers.granted(lease, what);
    match random.random_range(0..8) {
        // it works for a while, and longer than the TTL now and then
        0..=2 => sleep(Duration::from_millis(random.random_range(0..100))).await,
        3 => sleep(TTL * 2).await,
        // its renewals do not get through
        4 => {
            let mut blocker = world.database.connect().await;
            let lock = format!("begin; select from sqlock_leases where name = '{key}' for update");
            execute(&mut blocker, &lock).await;
            sleep(TTL).await;
            execute(&mut blocker, "rollback").await;
        }
        // its row is swept by somebody who should not
        5 => {
            let mut connection = world.database.connect().await;
            let delete = format!("delete from sqlock_leases where name = '{key}'");
            let expire = format!("{delete} and expires_at < clock_timestamp()");
            execute(&mut connection, &expire).await;
        }
        // it is never given back by hand
        6 => {
            drop(believers.forget(lease));
            return;
        }
        _ => {}
    }
    let is_lost = lease.check().is_err();
    if is_lost {
        world.losses.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(lease) = believers.forget(lease) {
        lease.release().await.ok();
    }
}

/// Connections break, and unused rows go.
async fn disturb(world: Arc<World>) {
    let mut side = world.database.server().connect().await;
    loop {
        sleep(Duration::from_millis(300)).await;
        let kill = format!(
            "select pg_terminate_backend(pid)::text from pg_stat_activity
             where datname = '{}' and state = 'idle' and query like 'set transaction%'
             order by random() limit 1",
            world.database.name()
        );
        let _killed: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(kill))
            .fetch_optional(&mut side)
            .await
            .expect("a superuser may");
        let swept = world.clients[0]
            .backend()
            .sweep(Duration::from_millis(200))
            .await;
        drop(swept);
        let _alive: bool = ask(&mut side, "select true").await;
    }
}
