//! Settings that endanger locks.

use sqlock::Locks;
use sqlock_postgres::preflight::{Backend, Danger, examine};
use sqlock_tests::{PostgresServer, TestDatabase};

use crate::{
    support::{SessionOptions, execute, run},
    warnings::warnings_of,
};

async fn dangers_with(database: &TestDatabase, setting: &str) -> Vec<Danger> {
    let mut admin = database.server().connect().await;
    let name = database.name();
    execute(&mut admin, &format!("alter database {name} set {setting}")).await;
    let report = examine(&database.options()).await.unwrap();
    let (setting, _) = setting.split_once(' ').unwrap();
    execute(
        &mut admin,
        &format!("alter database {name} reset {setting}"),
    )
    .await;
    report.dangers
}

/// Each is told with its value, why and what to do, for the backends that do not set it themselves.
#[test]
fn each_is_told_with_advice_and_none_on_a_well_set_server() {
    run(async || {
        let server = PostgresServer::start(&[
            ("tcp_keepalives_idle", "60"),
            ("tcp_keepalives_interval", "10"),
            ("tcp_keepalives_count", "3"),
            ("tcp_user_timeout", "60s"),
            ("client_connection_check_interval", "1s"),
        ])
        .await;
        let database = server.database().await;
        let report = examine(&database.options()).await.unwrap();
        assert_eq!(report.dangers, []);

        for (setting, value, backends) in [
            (
                "idle_in_transaction_session_timeout = '1min'",
                "60000 ms",
                "[Xact]",
            ),
            ("statement_timeout = '500ms'", "500 ms", "[Xact, Ttl]"),
            ("lock_timeout = '10ms'", "10 ms", "[Ttl]"),
            ("tcp_keepalives_idle = 7200", "7200 s", "[Xact]"),
            ("tcp_user_timeout = 0", "0 ms", "[Xact]"),
            ("client_connection_check_interval = 0", "0 ms", "[Xact]"),
            (
                "default_transaction_isolation = 'serializable'",
                "serializable",
                "[Xact]",
            ),
            ("default_transaction_read_only = on", "on", "[Ttl]"),
        ] {
            let dangers = dangers_with(&database, setting).await;
            assert_eq!(dangers.len(), 1, "{setting}: {dangers:?}");
            let danger = &dangers[0];
            assert!(setting.starts_with(danger.setting), "{danger:?}");
            assert_eq!(danger.value, value);
            assert_eq!(format!("{:?}", danger.backends), backends, "{setting}");
            for text in [danger.why, danger.advice] {
                assert!(text.len() > 10 && !text.contains("  "), "{text}");
            }
        }
        for harmless in [
            "idle_session_timeout = '1min'",
            "statement_timeout = '30s'",
            "lock_timeout = '1s'",
            "synchronous_commit = off",
            "tcp_keepalives_idle = 120",
        ] {
            assert_eq!(dangers_with(&database, harmless).await, [], "{harmless}");
        }
    });
}

/// The one that a session cannot set for itself is warned of at its start.
#[test]
fn a_small_lock_table_is_warned_of() {
    let warnings = warnings_of(async {
        let server = PostgresServer::start(&[
            ("max_locks_per_transaction", "10"),
            ("max_connections", "20"),
        ])
        .await;
        let report = examine(&server.url().parse().unwrap()).await.unwrap();
        assert_eq!(report.lock_capacity, Some(200));
        let mut dangers = report.dangers.iter();
        assert!(dangers.any(|danger| danger.backends.contains(&Backend::Session)));
        let locks = Locks::new(SessionOptions::new().connect(&server.url()).await.unwrap());
        locks.acquire(1).await.unwrap().release().await.unwrap();
        locks.shutdown().await.unwrap();
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in ["max_locks_per_transaction", "\"10\"", "why: ", "advice: "] {
        assert!(warnings[0].contains(part), "{warnings:?}");
    }
}
