//! Functions of the server's names that are not the server's.

use sqlock::Error;
use sqlock_postgres::preflight::{Engine, LockSupport, Pooler, Role, examine};
use sqlock_tests::{PostgresServer, TestDatabase};

use crate::{
    starts::refusal,
    support::{PATIENCE, execute, ids_held, node, put_decoys_first, run, until_waiting, within},
};

/// A schema that a role's `search_path` puts before the server's own does not matter: what is asked
/// is asked by its full name, or on a session that has set its own path.
#[test]
fn functions_of_a_schema_in_the_search_path_are_not_called() {
    run(async || {
        let database = TestDatabase::create().await;
        put_decoys_first(&database).await;
        let report = examine(&database.options()).await.unwrap();
        assert_eq!(report.engine, Engine::PostgreSql);
        assert_eq!(report.session_locks, LockSupport::Genuine);
        assert_eq!(report.role, Some(Role::Primary));
        assert_eq!(report.pooler, Pooler::NotSeen);
        assert!(!report.settings.is_empty());
        let (one, two) = (node(&database).await, node(&database).await);
        let guard = one.acquire(1).await.unwrap();
        assert_eq!(ids_held(&database).await, [1]);
        assert!(two.try_acquire(1).await.unwrap().is_none());
        assert_eq!(two.inspect(1).await.unwrap().len(), 1);
        let waiting = two.lock(1).within(PATIENCE);
        let waiter = tokio::spawn(async move { waiting.await?.release().await });
        until_waiting(&database, 1).await;
        guard.release().await.unwrap();
        within(PATIENCE, "the waiter", waiter)
            .await
            .unwrap()
            .unwrap();
        one.lock(2)
            .shared()
            .acquire()
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        one.shutdown().await.unwrap();
        two.shutdown().await.unwrap();
        assert_eq!(database.advisory_locks().await, []);
    });
}

/// A real server whose own functions grant without locking, and which says so little of itself that
/// it has to be tried.
#[test]
fn a_server_whose_own_functions_lie_is_unmasked() {
    run(async || {
        let server = PostgresServer::start(&[("allow_system_table_mods", "on")]).await;
        let database = server.database().await;
        let mut admin = database.connect().await;
        let honest = "create or replace function pg_catalog.version() returns text language sql \
                      as 'select ''PostgreSQL 16.2''::text'";
        execute(&mut admin, honest).await;

        let report = examine(&database.options()).await.unwrap();
        assert_eq!(report.engine, Engine::Unknown);
        assert_eq!(report.transaction_locks, LockSupport::Tested);
        assert_eq!(report.session_locks, LockSupport::Tested);
        assert_eq!(database.advisory_locks().await, []);
        let locks = node(&database).await;
        locks.acquire(1).await.unwrap().release().await.unwrap();

        for kind in ["", "xact_"] {
            let lie = format!(
                "create or replace function pg_catalog.pg_try_advisory_{kind}lock(bigint) returns \
                 boolean language sql as 'select true'"
            );
            execute(&mut admin, &lie).await;
            let error = refusal(&database.url()).await;
            assert!(
                matches!(error, Error::UnsupportedServer { .. }),
                "{error:?}"
            );
        }
        assert_eq!(database.advisory_locks().await, []);
    });
}
