//! A server that is reached directly.

use sqlock::{Locks, session::Preflight};
use sqlock_postgres::preflight::{
    Backend, Engine, LockSupport, Pooler, Role, examine, recommend, transaction_locks,
};
use sqlock_tests::{PostgresServer, TestDatabase};
use sqlx::postgres::PgPoolOptions;

use crate::{
    fake::{Answer, FakeServer},
    starts::cold_starts,
    support::{SessionOptions, run},
    warnings::warnings_of,
};

/// Never a false alarm: of 200 cold starts none is refused.
#[test]
fn cold_starts_are_not_refused() {
    run(async || {
        let database = TestDatabase::create().await;
        let refused = cold_starts(&database.url(), 200, 8).await;
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(database.advisory_locks().await, []);
    });
}

#[test]
fn the_report_tells_what_the_server_is() {
    run(async || {
        let database = TestDatabase::create().await;
        let report = examine(&database.options()).await.unwrap();
        assert!(report.version.text.starts_with("PostgreSQL "));
        let major = report.version.number.unwrap() / 10_000;
        assert!((9..100).contains(&major), "{:?}", report.version);
        assert_eq!(report.engine, Engine::PostgreSql);
        assert_eq!(report.role, Some(Role::Primary));
        assert_eq!(report.session_locks, LockSupport::Genuine);
        assert_eq!(report.transaction_locks, LockSupport::Genuine);
        assert_eq!(report.pooler, Pooler::NotSeen);
        assert!(report.lock_capacity.unwrap() > 1000, "{report:?}");
        let value = |name: &str| {
            let mut settings = report.settings.iter();
            settings
                .find(|setting| setting.name == name)
                .map(ToString::to_string)
        };
        assert_eq!(value("max_connections").as_deref(), Some("300"));
        assert_eq!(value("idle_session_timeout").as_deref(), Some("0 ms"));
        assert!(report.doubt().is_none());
        assert_eq!(recommend(&report).backend, Some(Backend::Session));
        assert_eq!(database.count_connections().await, 0);

        let pool = PgPoolOptions::new().connect_lazy_with(database.options());
        transaction_locks(&pool).await.unwrap();
    });
}

/// The session sets for itself what would endanger it, so that there is nothing to warn of.
#[test]
fn a_start_on_a_server_as_it_comes_warns_of_nothing() {
    let warnings = warnings_of(async {
        let server = PostgresServer::shared().await;
        let locks = Locks::new(SessionOptions::new().connect(&server.url()).await.unwrap());
        locks
            .acquire("quiet")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        locks.shutdown().await.unwrap();
    });
    assert_eq!(warnings, [""; 0]);
}

/// Turned off, nothing is asked about the server but what a session needs to know.
#[test]
fn turned_off_means_no_look() {
    run(async || {
        let server = FakeServer::start(|_, sql| match sql {
            _ if sql.contains("pg_is_in_recovery") => Answer::unknown(),
            _ => Answer::Done,
        })
        .await;
        let options = SessionOptions::new().preflight(Preflight::Skip);
        options.connect(&server.url()).await.unwrap_err();
        let asked = server.asked();
        assert_eq!(server.connections(), 1, "{asked:?}");
        let looks = ["version()", "pg_settings", "pg_postmaster_start_time"];
        for sql in &asked {
            assert!(!looks.iter().any(|look| sql.contains(look)), "{sql}");
        }
        // and the session of a real server works
        let database = TestDatabase::create().await;
        let options = SessionOptions::new().preflight(Preflight::Skip);
        let locks = Locks::new(options.connect(&database.url()).await.unwrap());
        locks.acquire(1).await.unwrap().release().await.unwrap();
    });
}
