//! Case 47 (sqlx#1762, yugabyte#19974, mattes/migrate#208): engines that speak PostgreSQL's protocol
//! and lack advisory locks, or grant them to everybody.

use std::sync::Mutex;

use sqlock::Error;
use sqlock_postgres::preflight::{Engine, LockSupport, Pooler, examine, recommend};
use sqlx::postgres::PgPoolOptions;

use crate::{
    fake::{Answer, FakeServer},
    starts::refusal,
    support::run,
};

/// An engine of that version whose locks do as `locks` does, by connection and statement. Every
/// connection has a process of its own.
async fn engine(
    version: &'static str,
    locks: impl Fn(usize, &str) -> Answer + Send + Sync + 'static,
) -> FakeServer {
    FakeServer::start(move |connection, sql| match sql {
        "begin" | "rollback" => Answer::Done,
        "select 1" => Answer::text(1),
        _ if sql.contains("version()") => Answer::text(version),
        _ if sql.contains("pg_postmaster_start_time") => Answer::process(connection, "1"),
        _ if sql.contains("advisory") => locks(connection, sql),
        _ => Answer::unknown(),
    })
    .await
}

async fn refused(server: &FakeServer) -> (String, String) {
    match refusal(&server.url()).await {
        Error::UnsupportedServer { engine, reason } => (engine, reason),
        other => panic!("{other:?}"),
    }
}

/// Known by name: they are not even asked for a lock.
#[test]
fn engines_that_are_known_to_have_none_are_refused() {
    run(async || {
        for version in [
            "CockroachDB CCL v23.1.0 (x86_64-pc-linux-gnu, built 2023/05/15)",
            "PostgreSQL 9.5.0 on x86_64-unknown-linux-gnu (Materialize v0.130.0)",
            "PostgreSQL 13.14.0-RisingWave-2.0.0 (9ff1b2a)",
            "CrateDB 5.9.0 (built 9ff1b2a/NA, Linux 5.10 amd64)",
            "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2, Redshift 1.0.7",
            "PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB",
            "PostgreSQL 16.3 GreptimeDB 0.9.0",
        ] {
            let server = engine(version, |_, _| Answer::bool(true)).await;
            let (engine, reason) = refused(&server).await;
            assert_eq!(engine, version);
            assert!(!reason.is_empty());
            let asked = server.asked();
            assert!(
                !asked.iter().any(|sql| sql.contains("advisory")),
                "{asked:?}"
            );
        }
    });
}

/// Not known by name: it says yes to everybody.
#[test]
fn an_engine_that_grants_without_locking_is_unmasked() {
    run(async || {
        let server = engine("SomethingSQL 1.0", |_, _| Answer::bool(true)).await;
        let (engine, reason) = refused(&server).await;
        assert_eq!(engine, "SomethingSQL 1.0");
        assert!(reason.contains("granted to two connections"), "{reason}");
        let pool = PgPoolOptions::new().connect_lazy(&server.url()).unwrap();
        let error = sqlock_postgres::preflight::transaction_locks(&pool).await;
        assert!(
            matches!(error, Err(Error::UnsupportedServer { .. })),
            "{error:?}"
        );
    });
}

/// With an error, with nothing, with a word, or with no to everybody.
#[test]
fn engines_that_cannot_lock_are_refused() {
    run(async || {
        let answers: [fn() -> Answer; 5] = [
            Answer::unknown,
            || Answer::Error("0A000", "advisory locks are not yet implemented"),
            || Answer::Done,
            || Answer::text("sure"),
            || Answer::bool(false),
        ];
        for answer in answers {
            let version = "PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64-pc-linux-gnu, compiled by c, \
                           64-bit";
            let server = engine(version, move |_, _| answer()).await;
            let (engine, _) = refused(&server).await;
            assert_eq!(engine, version);
            let report = examine(&server.url().parse().unwrap()).await.unwrap();
            assert_eq!(report.engine, Engine::YugabyteDb);
            assert!(
                matches!(report.session_locks, LockSupport::Absent { .. }),
                "{report:?}"
            );
            assert_eq!(report.pooler, Pooler::NotSeen);
            let recommended = recommend(&report).backend;
            assert_eq!(recommended, Some(sqlock_postgres::preflight::Backend::Ttl));
        }
    });
}

/// The transaction's locks are real, and the session's are stubs, or the other way round.
#[test]
fn the_two_kinds_of_locks_are_tested_apart() {
    run(async || {
        for real in ["xact", "session"] {
            let holder = Mutex::new(None);
            let server = engine("PostgreSQL 16.2", move |connection, sql| {
                let is_real = sql.contains("xact") == (real == "xact");
                let mut holder = holder.lock().unwrap();
                Answer::bool(!is_real || *holder.get_or_insert(connection) == connection)
            })
            .await;
            let report = examine(&server.url().parse().unwrap()).await.unwrap();
            let (right, wrong) = match real {
                "xact" => (&report.transaction_locks, &report.session_locks),
                _ => (&report.session_locks, &report.transaction_locks),
            };
            assert_eq!(*right, LockSupport::Tested, "{report:?}");
            assert!(matches!(wrong, LockSupport::Absent { .. }), "{report:?}");
            assert_eq!(report.check_session_locks().is_ok(), real == "session");
            assert_eq!(report.check_transaction_locks().is_ok(), real == "xact");
        }
    });
}

/// Late versions of `CockroachDB` have real locks of transactions, and stubs of a session's.
#[test]
fn session_stubs_are_known_by_name_where_transactions_lock() {
    run(async || {
        let holder = Mutex::new(None);
        let server = engine("CockroachDB CCL v26.3.0", move |connection, _| {
            Answer::bool(*holder.lock().unwrap().get_or_insert(connection) == connection)
        })
        .await;
        refused(&server).await;
        let pool = PgPoolOptions::new().connect_lazy(&server.url()).unwrap();
        let report = sqlock_postgres::preflight::transaction_locks(&pool).await;
        assert_eq!(report.unwrap().transaction_locks, LockSupport::Tested);
    });
}
