//! Random schedules of everything that can happen to a lease.

use std::{sync::Arc, time::Duration};

use rand::{Rng, SeedableRng, rngs::StdRng};
use sqlock::ttl::{Protocol, TtlOptions};
use sqlock_tests::{Believers, Tally, TestDatabase, run_schedules, schedules_or};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    support::{ask, execute},
    tools::{LeaseLocks, create_table, locks, options},
    world::pooler,
};

const CLIENTS: usize = 8;
const TTL: Duration = Duration::from_millis(400);

struct World {
    database: TestDatabase,
    clients: Vec<LeaseLocks>,
    tally: Tally,
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
            tally: Tally::default(),
        });
        let disturbance = tokio::spawn(disturb(Arc::clone(&world)));
        let count = schedules_or(1_000);
        run_schedules(0..count as u64, 150, |seed| {
            let world = Arc::clone(&world);
            async move { schedule(&world, seed).await }
        })
        .await;
        disturbance.abort();
        let (grants, losses) = world.tally.counts();
        println!("{count} schedules: {grants} grants, {losses} losses");
        // much less than there are on an idle machine: that it is no empty test
        assert!(grants > count / 2 && losses > count / 100);
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
    world.tally.grant();
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
        world.tally.loss();
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
