//! Servers, databases and roles with settings that are not good for locks.

use std::time::Duration;

use sqlock_tests::{PostgresServer, TestDatabase, eventually};
use tokio::time::sleep;

use crate::support::{
    PATIENCE, SessionOptions, ask, execute, ids_held, node_with, run, until_waiting, within,
};

/// Idle-session killers (57P05), and statements that may not take long: set for the whole server,
/// before and after the session began, they end other sessions and not ours.
#[test]
fn idle_session_killers_do_not_end_the_session() {
    run(async || {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        let mut admin = server.connect().await;
        execute(
            &mut admin,
            "set idle_session_timeout = 0; set statement_timeout = 0",
        )
        .await;
        // nothing that keeps a session busy
        let rarely = || SessionOptions::new().poll_interval(Duration::from_secs(60));
        let before = node_with(&database, rarely()).await;
        let early = before.acquire(1).await.unwrap();
        for setting in [
            "idle_session_timeout = '500ms'",
            "idle_in_transaction_session_timeout = '500ms'",
            "statement_timeout = '200ms'",
        ] {
            execute(&mut admin, &format!("alter system set {setting}")).await;
        }
        execute(&mut admin, "select pg_reload_conf()").await;
        let mut victim = database.connect().await;
        eventually(PATIENCE, async || {
            ask::<String>(&mut victim, "show idle_session_timeout").await == "500ms"
        })
        .await;
        let after = node_with(&database, rarely()).await;
        // the old session goes to rest under the new settings
        before.acquire(3).await.unwrap().release().await.unwrap();
        let late = after.acquire(2).await.unwrap();
        let waiting = tokio::spawn(after.lock(1).acquire());

        sleep(Duration::from_millis(1500)).await;

        assert!(
            sqlx::query("select 1").execute(&mut victim).await.is_err(),
            "the server ends no idle sessions: the test says nothing"
        );
        assert_eq!(ids_held(&database).await, [1, 2]);
        early.check().unwrap();
        late.check().unwrap();
        early.release().await.unwrap();
        let guard = within(PATIENCE, "the waiter's turn", waiting).await;
        guard.unwrap().unwrap().release().await.unwrap();
        late.release().await.unwrap();
    });
}

/// Case 28, of its kind: isolation levels, read-only databases and others' time limits, set for the
/// database, break no lock, no wait and no notification.
#[test]
fn defaults_of_the_database_do_not_matter() {
    run(async || {
        for setting in [
            "default_transaction_isolation = 'serializable'",
            "default_transaction_isolation = 'repeatable read'",
            "default_transaction_read_only = on",
            "default_transaction_deferrable = on",
            "lock_timeout = '1ms'",
            "statement_timeout = '10ms'",
            "search_path = ''",
            "bytea_output = 'escape'",
            "client_encoding = 'LATIN1'",
        ] {
            let database = TestDatabase::create().await;
            let mut admin = database.server().connect().await;
            let name = database.name();
            execute(&mut admin, &format!("alter database {name} set {setting}")).await;
            let rarely = || SessionOptions::new().poll_interval(Duration::from_secs(60));
            let one = node_with(&database, rarely()).await;
            let two = node_with(&database, rarely()).await;
            let guard = one.acquire("Grüße").await.unwrap();
            assert_eq!(ids_held(&database).await.len(), 1, "{setting}");
            let waiting = tokio::spawn(two.lock("Grüße").acquire());
            until_waiting(&database, 1).await;
            guard.release().await.unwrap();
            // only a notification can be this soon
            let guard = within(PATIENCE, setting, waiting).await.unwrap().unwrap();
            guard.release().await.unwrap();
            // long statements, too
            let many = one.acquire_all(0..1500).await.unwrap();
            many.release().await.unwrap();
            assert_eq!(database.advisory_locks().await, [], "{setting}");
        }
    });
}
