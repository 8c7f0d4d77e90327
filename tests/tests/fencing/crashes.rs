//! A server that dies under load, in any way, and one that takes another's place.

use std::time::Duration;

use rand::Rng;
use sqlock::{
    FencingToken, TtlBackend,
    session::{Fencing, Preflight, SessionOptions},
};
use sqlock_tests::{PostgresServer, Stop, TestDatabase, holds_within};
use sqlx::{Connection, PgConnection};
use tokio::time::{sleep, timeout};

use crate::{
    kinds::{Kind, Row, Sequence},
    load::{Load, Records},
    support::{PATIENCE, ask},
};

const TIME_LIMIT: Duration = Duration::from_secs(180);

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let ended = runtime.block_on(async { timeout(TIME_LIMIT, test).await });
    ended.expect("the test does not hang");
}

/// How many times it dies: `SQLOCK_CRASHES`, or enough for every day.
fn crashes(by_default: usize) -> usize {
    let wanted = std::env::var("SQLOCK_CRASHES").ok();
    let wanted = wanted.and_then(|count| count.parse().ok());
    wanted.unwrap_or(by_default)
}

async fn world<K: Kind>(server: &PostgresServer) -> TestDatabase {
    let database = server.database().await;
    K::make(&database).await;
    let leases = TtlBackend::connect(&database.url()).expect("options");
    leases.create_table().await.expect("a table");
    database
}

/// A lock of a new process, and its token.
async fn token(url: &str) -> FencingToken {
    let options = SessionOptions::new()
        .preflight(Preflight::Skip)
        .fencing(Fencing::new());
    let backend = options.connect(url).await.expect("a session");
    let guard = sqlock::Locks::new(backend).acquire("one").await;
    guard.expect("a lock").token().expect("a token")
}

async fn dies_over_and_over<K: Kind>(crashes: usize) {
    let server = PostgresServer::start(&[]).await;
    let database = world::<K>(&server).await;
    let records = Records::default();
    for crash in 0..crashes {
        let before = (records.advisory.count(), records.leases.count());
        let load = Load::start(&database.url(), &records).await;
        let is_under_way = holds_within(PATIENCE, async || {
            records.advisory.count() >= before.0 + 10 && records.leases.count() > before.1
        });
        assert!(is_under_way.await, "nobody gets a lock");
        let moment = rand::rng().random_range(0..60);
        sleep(Duration::from_millis(moment)).await;
        load.stop();
        match crash % 4 {
            2 => server.stop(Stop::Immediate).await,
            3 => server.stop(Stop::Fast).await,
            _ => server.kill().await,
        }
        // whoever was granted a lock by the dead server has told
        load.end().await;
        server.start_again().await;
    }
    let load = Load::start(&database.url(), &records).await;
    sleep(Duration::from_millis(50)).await;
    load.end().await;
}

#[test]
fn tokens_rise_over_twelve_crashes_under_load() {
    run(dies_over_and_over::<Sequence>(crashes(12)));
}

#[test]
fn a_rows_tokens_rise_over_crashes_under_load() {
    run(dies_over_and_over::<Row>(crashes(4)));
}

/// One backend's crash ends all sessions, and resets what is unlogged; the postmaster lives on.
#[test]
fn tokens_rise_over_the_crash_of_one_backend() {
    run(async {
        let server = PostgresServer::start(&[]).await;
        let database = world::<Sequence>(&server).await;
        let mut last = token(&database.url()).await;
        for _ in 0..2 {
            let mut bystander = database.connect().await;
            let mut victim = database.connect().await;
            let pid: i32 = ask(&mut victim, "select pg_backend_pid()").await;
            server.kill_backend(pid);
            // ended by the postmaster, which then recovers
            let ended = sqlx::query("select pg_sleep(60)").execute(&mut bystander);
            ended.await.unwrap_err();
            drop(victim);
            let is_back = holds_within(PATIENCE, async || {
                PgConnection::connect(&database.url()).await.is_ok()
            });
            assert!(is_back.await, "the server does not recover");
            let next = token(&database.url()).await;
            assert!(next > last, "{next} after {last}");
            last = next;
        }
    });
}

/// All tokens, those of leases too: what was committed is on the standby.
#[test]
fn tokens_rise_over_the_promotion_of_a_synchronous_standby() {
    run(async {
        let primary = PostgresServer::start_primary(&[]).await;
        let database = world::<Sequence>(&primary).await;
        let standby = primary.start_standby().await;
        standby.make_synchronous().await;
        let records = Records::default();
        let load = Load::start(&database.url(), &records).await;
        let is_under_way = holds_within(PATIENCE, async || {
            records.advisory.count() >= 20 && records.leases.count() >= 5
        });
        assert!(is_under_way.await, "nobody gets a lock");
        load.stop();
        primary.kill().await;
        load.end().await;
        standby.promote().await;
        let before = (records.advisory.count(), records.leases.count());
        let load = Load::start(&standby.url_of(&database), &records).await;
        let goes_on = holds_within(PATIENCE, async || {
            records.advisory.count() >= before.0 + 20 && records.leases.count() >= before.1 + 5
        });
        assert!(goes_on.await, "nobody gets a lock from the new primary");
        load.end().await;
    });
}

/// The standby knows nothing of the last base, which the primary made after it was cut off: the new
/// timeline is above it. A row's tokens stand on the timeline too.
#[test]
fn tokens_rise_over_the_promotion_of_a_standby_that_is_behind() {
    async fn check<K: Kind>() {
        let primary = PostgresServer::start_primary(&[]).await;
        let database = world::<K>(&primary).await;
        let standby = primary.start_standby().await;
        let before = token(&database.url()).await;
        standby.wait_until_caught_up().await;
        standby.server().stop(Stop::Fast).await;
        primary.restart(Stop::Immediate).await;
        let last = token(&database.url()).await;
        assert!(last > before);
        primary.kill().await;
        standby.server().start_again().await;
        standby.promote().await;
        let next = token(&standby.url_of(&database)).await;
        assert!(next > last, "{next} after {last}");
    }
    run(async {
        check::<Sequence>().await;
        check::<Row>().await;
    });
}
