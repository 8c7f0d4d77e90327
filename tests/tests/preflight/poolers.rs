//! Cases 1, 2 and 49, and their kind: session locks through a real PgBouncer.

use std::time::Duration;

use sqlock::{Error, Locks};
use sqlock_postgres::preflight::{
    Backend, LockSupport, Pooler, examine, recommend, transaction_locks,
};
use sqlock_tests::{PoolMode, TestDatabase};
use sqlx::postgres::PgPoolOptions;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    bouncer::Bouncer,
    clients::{answer, client, keep_busy, keep_in_transactions},
    starts::{cold_starts, refusal},
    support::{PATIENCE, SessionOptions, execute, run, within},
    warnings::warnings_of,
};

const STARTS: usize = 200;

/// All of them, before they were granted anything; and the look leaves no lock on a pooled backend.
async fn all_are_refused(bouncer: &Bouncer, database: &TestDatabase) {
    let refused = cold_starts(&bouncer.url(), STARTS, 4).await;
    assert_eq!(refused.len(), STARTS, "{refused:?}");
    for error in refused {
        assert!(matches!(error, Error::PoolerRefused { .. }), "{error:?}");
    }
    assert_eq!(database.advisory_locks().await, []);
}

#[test]
fn cold_starts_through_an_idle_transaction_pooler_are_refused() {
    run(async || {
        let database = TestDatabase::create().await;
        let bouncer = Bouncer::start(&database, PoolMode::Transaction, &[]).await;
        all_are_refused(&bouncer, &database).await;
    });
}

#[test]
fn cold_starts_through_a_busy_transaction_pooler_are_refused() {
    run(async || {
        let database = TestDatabase::create().await;
        let bouncer = Bouncer::start(&database, PoolMode::Transaction, &[]).await;
        let mut load = JoinSet::new();
        for _ in 0..8 {
            load.spawn(keep_busy(bouncer.url()));
        }
        sleep(Duration::from_millis(200)).await;
        all_are_refused(&bouncer, &database).await;
        load.shutdown().await;
    });
}

#[test]
fn cold_starts_beside_thirty_clients_in_transactions_are_refused() {
    run(async || {
        let database = TestDatabase::create().await;
        let bouncer = Bouncer::start(&database, PoolMode::Transaction, &[]).await;
        let mut load = JoinSet::new();
        for _ in 0..30 {
            load.spawn(keep_in_transactions(bouncer.url()));
        }
        sleep(Duration::from_millis(200)).await;
        all_are_refused(&bouncer, &database).await;
        load.shutdown().await;
    });
}

#[test]
fn cold_starts_through_a_session_pooler_are_not_refused() {
    run(async || {
        let database = TestDatabase::create().await;
        let bouncer =
            Bouncer::start(&database, PoolMode::Session, &[("default_pool_size", "50")]).await;
        let refused = cold_starts(&bouncer.url(), STARTS, 8).await;
        assert!(refused.is_empty(), "{refused:?}");
        database.wait_until_no_advisory_locks(PATIENCE).await;
    });
}

#[test]
fn pools_of_one_of_two_in_turn_and_of_statements_are_refused() {
    run(async || {
        for (mode, settings) in [
            (PoolMode::Statement, &[][..]),
            (PoolMode::Transaction, &[("default_pool_size", "1")]),
            (
                PoolMode::Transaction,
                &[("default_pool_size", "2"), ("server_round_robin", "1")],
            ),
        ] {
            let database = TestDatabase::create().await;
            let bouncer = Bouncer::start(&database, mode, settings).await;
            let refused = cold_starts(&bouncer.url(), 50, 1).await;
            assert_eq!(refused.len(), 50, "{mode:?}, {settings:?}");
            assert!(
                refused
                    .iter()
                    .all(|error| matches!(error, Error::PoolerRefused { .. })),
                "{refused:?}"
            );
            assert_eq!(database.advisory_locks().await, []);
        }
    });
}

/// Cases 1 and 2, and 49 (Hangfire, Flyway, Prisma): what happens by hand, and that the backend says
/// what to do instead, before any work runs.
#[test]
fn what_a_session_lock_does_through_a_transaction_pooler_and_what_is_said() {
    run(async || {
        let database = TestDatabase::create().await;
        let bouncer = Bouncer::start(&database, PoolMode::Transaction, &[]).await;
        let (mut one, mut other) = (client(&bouncer.url()).await, client(&bouncer.url()).await);
        // case 2: both have it, on one server connection
        for client in [&mut one, &mut other] {
            assert!(answer::<bool>(client, "select pg_try_advisory_lock(1)").await);
        }
        // case 1: the other's transaction has the server connection when the first frees its lock
        execute(&mut other, "begin; select 1").await;
        assert!(!answer::<bool>(&mut one, "select pg_advisory_unlock(1)").await);
        assert_eq!(database.advisory_locks().await.len(), 1);
        // case 49: and who waits for it, waits in vain
        let wait = answer::<String>(&mut one, "select pg_advisory_lock(1)::text");
        let waited = tokio::time::timeout(Duration::from_millis(500), wait).await;
        assert!(waited.is_err(), "the lock that nobody holds could be had");
        drop((one, other));

        let error = refusal(&bouncer.url()).await;
        assert!(matches!(error, Error::PoolerRefused { .. }), "{error:?}");
        assert!(!error.is_retryable());
        let text = error.to_string();
        for advice in ["connect directly", "session mode", "xact or ttl", "process"] {
            assert!(text.contains(advice), "{text}");
        }
    });
}

/// While all of its server connections are within transactions, a pooler answers nobody: that is an
/// outage, and no grant.
#[test]
fn a_pooler_that_answers_nobody_grants_nothing() {
    run(async || {
        let database = TestDatabase::create().await;
        let settings = [("default_pool_size", "2")];
        let bouncer = Bouncer::start(&database, PoolMode::Transaction, &settings).await;
        let (mut one, mut other) = (client(&bouncer.url()).await, client(&bouncer.url()).await);
        execute(&mut one, "begin; select 1").await;
        // with one server connection left, both connections of the look share it
        let error = refusal(&bouncer.url()).await;
        assert!(matches!(error, Error::PoolerRefused { .. }), "{error:?}");
        execute(&mut other, "begin; select 1").await;
        let hasty = SessionOptions::new().connect_timeout(Duration::from_millis(600));
        let error = hasty.connect(&bouncer.url()).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert_eq!(database.advisory_locks().await, []);
    });
}

/// Its one server connection belongs to the first connection of the look, and the second is not
/// served: no refusal, a warning, and a session that works.
#[test]
fn a_session_pooler_with_one_server_connection_locks_and_is_warned_of() {
    let warnings = warnings_of(async {
        let database = TestDatabase::create().await;
        let settings = [("default_pool_size", "1")];
        let bouncer = Bouncer::start(&database, PoolMode::Session, &settings).await;
        let hasty = SessionOptions::new().connect_timeout(Duration::from_secs(2));
        let locks = Locks::new(hasty.connect(&bouncer.url()).await.unwrap());
        locks.acquire(1).await.unwrap().release().await.unwrap();
        locks.shutdown().await.unwrap();
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("could not be seen"), "{warnings:?}");
}

#[test]
fn the_report_tells_the_mode_and_the_backend() {
    run(async || {
        for (mode, backend) in [
            (PoolMode::Session, Backend::Session),
            (PoolMode::Transaction, Backend::Xact),
            (PoolMode::Statement, Backend::Ttl),
        ] {
            let database = TestDatabase::create().await;
            let bouncer = Bouncer::start(&database, mode, &[]).await;
            let report = examine(&bouncer.url().parse().unwrap()).await.unwrap();
            match (mode, &report.pooler) {
                (PoolMode::Session, Pooler::Session)
                | (PoolMode::Transaction, Pooler::Transaction { .. })
                | (PoolMode::Statement, Pooler::Statement { .. }) => {}
                (_, pooler) => panic!("{mode:?}: {pooler:?}"),
            }
            assert_eq!(report.session_locks, LockSupport::Genuine);
            assert_eq!(recommend(&report).backend, Some(backend));
            // the pooler's client is not the server's: what the server does about those that vanish
            // is of no account
            let tcp = report.dangers.iter();
            let count = tcp.filter(|danger| danger.setting.starts_with("tcp_"));
            assert_eq!(count.count() == 0, !matches!(mode, PoolMode::Session));
            assert_eq!(database.advisory_locks().await, []);
        }
    });
}

/// Locks of transactions are not refused, nor kept waiting, also where the pool has one connection.
#[test]
fn transaction_locks_pass_through_a_transaction_pooler() {
    run(async || {
        let database = TestDatabase::create().await;
        let settings = [("default_pool_size", "1")];
        let bouncer = Bouncer::start(&database, PoolMode::Transaction, &settings).await;
        let options: sqlx::postgres::PgConnectOptions = bouncer.url().parse().unwrap();
        let pool = PgPoolOptions::new().connect_lazy_with(options.extra_float_digits(None));
        let limit = Duration::from_secs(2);
        let report = within(limit, "the look", transaction_locks(&pool)).await;
        assert_eq!(report.unwrap().transaction_locks, LockSupport::Genuine);
    });
}
