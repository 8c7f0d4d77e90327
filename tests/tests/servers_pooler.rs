//! The poolers and the standbys that other tests stand on.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::process::Command;
use std::time::Duration;

use sqlock_tests::{PgBouncer, PoolMode, PostgresServer, TestDatabase, eventually, holds_within};
use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, Row as _};

const PATIENCE: Duration = Duration::from_secs(30);

/// By a simple query, which a pooler takes in any mode.
async fn pid(client: &mut PgConnection) -> i32 {
    let statement = sqlx::raw_sql("select pg_backend_pid()");
    client.fetch_one(statement).await.unwrap().get(0)
}

async fn run(client: &mut PgConnection, statement: &'static str) -> Result<(), String> {
    let outcome = client.execute(sqlx::raw_sql(statement)).await;
    outcome.map(drop).map_err(|error| error.to_string())
}

async fn pooled(mode: PoolMode, size: u32) -> (TestDatabase, PgBouncer) {
    let database = TestDatabase::create().await;
    let pooler = PgBouncer::with(mode).pool_size(size);
    let pooler = pooler.start(database.server()).await;
    (database, pooler)
}

#[tokio::test]
async fn in_transaction_mode_two_clients_take_turns_on_one_backend() {
    let (database, pooler) = pooled(PoolMode::Transaction, 1).await;
    let mut one = database.through(&pooler).connect().await.unwrap();
    let mut other = pooler.connect(database.name()).await;
    let backend = pid(&mut one).await;
    for _ in 0..3 {
        assert_eq!(pid(&mut other).await, backend);
        assert_eq!(pid(&mut one).await, backend);
    }
    assert_eq!(database.count_connections().await, 1);

    // within a transaction it is one client's
    run(&mut one, "begin").await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(300), pid(&mut other));
    waits.await.unwrap_err();
    let backends = database.backends().await;
    assert_eq!(backends[0].state.as_deref(), Some("idle in transaction"));
    run(&mut one, "commit").await.unwrap();
}

#[tokio::test]
async fn in_transaction_mode_named_statements_of_two_clients_collide() {
    let (database, pooler) = pooled(PoolMode::Transaction, 1).await;
    let mut one = pooler.connect(database.name()).await;
    let mut other = pooler.connect(database.name()).await;
    sqlx::query("select 1").execute(&mut one).await.unwrap();
    let error = sqlx::query("select 1").execute(&mut other).await;
    let error = error.unwrap_err();
    let code = error.as_database_error().unwrap().code();
    assert_eq!(code.as_deref(), Some("42P05"), "{error}");
}

#[tokio::test]
async fn in_session_mode_a_client_has_a_backend_of_its_own() {
    let (database, pooler) = pooled(PoolMode::Session, 2).await;
    let mut one = pooler.connect(database.name()).await;
    let mut other = pooler.connect(database.name()).await;
    let (first, second) = (pid(&mut one).await, pid(&mut other).await);
    assert_ne!(first, second);
    for _ in 0..3 {
        sqlx::query("select 1").execute(&mut other).await.unwrap();
        assert_eq!(pid(&mut other).await, second);
        assert_eq!(pid(&mut one).await, first);
    }
    // the next client is given what the last has left
    one.close().await.unwrap();
    let mut next = pooler.connect(database.name()).await;
    assert_eq!(pid(&mut next).await, first);
}

#[tokio::test]
async fn in_statement_mode_transactions_are_refused() {
    let (database, pooler) = pooled(PoolMode::Statement, 1).await;
    let mut client = pooler.connect(database.name()).await;
    pid(&mut client).await;
    let error = run(&mut client, "begin").await.unwrap_err();
    assert!(error.contains("transaction blocks not allowed"), "{error}");
}

#[tokio::test]
async fn the_settings_are_stock() {
    let (database, pooler) = pooled(PoolMode::Transaction, 1).await;
    // a start-up parameter that sqlx sends unasked, in what it makes of a url
    let error = PgConnection::connect(&database.url_through(&pooler)).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("unsupported startup parameter: extra_float_digits"),
        "{error}"
    );
    let ignoring = PgBouncer::with(PoolMode::Session)
        .setting("ignore_startup_parameters", "extra_float_digits")
        .start(database.server());
    let ignoring = ignoring.await;
    PgConnection::connect(&database.url_through(&ignoring))
        .await
        .unwrap();
}

#[tokio::test]
async fn its_limits_are_the_tests_to_set() {
    let database = TestDatabase::create().await;
    let pooler = PgBouncer::with(PoolMode::Transaction)
        .pool_size(1)
        .max_client_conn(2)
        .query_wait_timeout(Duration::from_secs(1))
        .start(database.server())
        .await;
    let mut holder = pooler.connect(database.name()).await;
    let mut waiter = pooler.connect(database.name()).await;
    let error = database.through(&pooler).connect().await.unwrap_err();
    assert!(error.to_string().contains("no more connections"), "{error}");
    run(&mut holder, "begin").await.unwrap();
    let error = run(&mut waiter, "select 1").await.unwrap_err();
    assert!(error.contains("query_wait_timeout"), "{error}");
}

#[tokio::test]
async fn the_console_tells_of_pools_and_clients() {
    let (database, pooler) = pooled(PoolMode::Transaction, 1).await;
    let mut holder = pooler.connect(database.name()).await;
    run(&mut holder, "begin").await.unwrap();
    let mut waiter = pooler.connect(database.name()).await;
    let waiting = tokio::spawn(async move { pid(&mut waiter).await });
    eventually(PATIENCE, async || {
        let pools = pooler.show_pools().await;
        pools.len() == 1 && pools[0].clients_waiting == 1
    })
    .await;
    let pool = pooler.show_pools().await.remove(0);
    assert_eq!(pool.database, database.name());
    assert_eq!((pool.clients_active, pool.servers_active), (1, 1));
    let clients = pooler.show_clients().await;
    let states: Vec<_> = clients.iter().map(|client| client.has_server).collect();
    assert_eq!(states.iter().filter(|has| **has).count(), 1, "{clients:?}");
    assert_eq!(states.len(), 2, "{clients:?}");
    run(&mut holder, "commit").await.unwrap();
    waiting.await.unwrap();
}

#[tokio::test]
async fn a_paused_pooler_answers_once_resumed_and_a_setting_lasts_until_reload() {
    let (database, pooler) = pooled(PoolMode::Transaction, 1).await;
    let mut client = pooler.connect(database.name()).await;
    pooler.pause().await;
    let answer = holds_within(Duration::from_millis(300), async || {
        let look = pid(&mut client);
        let look = tokio::time::timeout(Duration::from_millis(300), look);
        look.await.is_ok()
    });
    assert!(!answer.await, "a paused pooler answered");
    pooler.resume().await;
    let mut one = pooler.connect(database.name()).await;
    pid(&mut one).await;

    pooler.set("default_pool_size", "2").await;
    let mut other = pooler.connect(database.name()).await;
    run(&mut one, "begin").await.unwrap();
    assert_ne!(pid(&mut other).await, pid(&mut one).await);
    run(&mut one, "commit").await.unwrap();
    pooler.reload().await;
    pooler.reconnect().await;
    run(&mut one, "begin").await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(300), pid(&mut other));
    waits.await.unwrap_err();
}

#[tokio::test]
async fn no_pooler_to_be_had_says_what_to_install() {
    let server = PostgresServer::shared().await;
    let output = Command::new(env!("CARGO_BIN_EXE_hold-server"))
        .arg("shared-pooler")
        .env("SQLOCK_TEST_POSTGRES_SOURCE", "url")
        .env("SQLOCK_TEST_POSTGRES_URL", server.url())
        // Where no engine listens: neither a binary nor a container.
        .env("SQLOCK_TEST_PGBOUNCER_SOURCE", "container")
        .env("DOCKER_HOST", "tcp://127.0.0.1:1")
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for hint in [
        "apt-get install pgbouncer",
        "container engine",
        "SQLOCK_TEST_PGBOUNCER_IMAGE",
    ] {
        assert!(message.contains(hint), "{message}");
    }
}

/// What a container cannot do.
mod local_binaries {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Stdio};

    use super::*;
    use sqlock_tests::{Stop, signal};

    #[tokio::test]
    async fn a_stopped_pooler_cuts_its_clients_off_and_starts_again_on_its_port() {
        let (database, pooler) = pooled(PoolMode::Transaction, 1).await;
        let mut client = pooler.connect(database.name()).await;
        run(&mut client, "begin").await.unwrap();
        pooler.stop().await;
        run(&mut client, "commit").await.unwrap_err();
        database.through(&pooler).connect().await.unwrap_err();
        eventually(PATIENCE, async || database.count_connections().await == 0).await;
        pooler.start_again().await;
        pid(&mut pooler.connect(database.name()).await).await;
        pooler.restart().await;
        pid(&mut pooler.connect(database.name()).await).await;
    }

    #[tokio::test]
    async fn a_dropped_pooler_is_gone_even_if_its_process_is_paused() {
        for pauses in [None, Some(signal::pause as fn(i32))] {
            let server = PostgresServer::shared().await;
            let pooler = PgBouncer::start(&server, PoolMode::Session).await;
            let process = pooler.pid();
            assert!(signal::is_alive(process));
            if let Some(pause) = pauses {
                pause(process);
            }
            drop(pooler);
            assert!(!signal::is_alive(process));
        }
    }

    #[tokio::test]
    async fn a_wrong_setting_fails_with_its_own_words() {
        let start = tokio::spawn(async {
            let server = PostgresServer::shared().await;
            let pooler = PgBouncer::with(PoolMode::Session).setting("pool_mode", "odd");
            pooler.start(&server).await
        });
        let payload = start.await.unwrap_err().into_panic();
        let message = payload.downcast::<String>().unwrap();
        assert!(message.contains("pool_mode"), "{message}");
    }

    #[tokio::test]
    async fn a_standby_follows_its_primary_and_is_promoted() {
        let primary = PostgresServer::start_primary(&[]).await;
        let database = primary.database().await;
        let mut writer = database.connect().await;
        run(&mut writer, "create table kept (id int)")
            .await
            .unwrap();
        let standby = primary.start_standby().await;
        assert!(is_in_recovery(&mut standby.connect().await).await);
        assert!(!is_in_recovery(&mut primary.connect().await).await);

        run(&mut writer, "insert into kept values (1)")
            .await
            .unwrap();
        standby.wait_until_caught_up().await;
        let copy = standby.url_of(&database);
        let mut reader = PgConnection::connect(&copy).await.unwrap();
        assert_eq!(count(&mut reader).await, 1);
        let error = run(&mut reader, "insert into kept values (2)").await;
        assert!(error.unwrap_err().contains("read-only"));

        standby.pause_replay().await;
        run(&mut writer, "insert into kept values (2)")
            .await
            .unwrap();
        assert_eq!(count(&mut reader).await, 1);
        standby.resume_replay().await;
        standby.wait_until_caught_up().await;
        assert_eq!(count(&mut reader).await, 2);

        primary.stop(Stop::Immediate).await;
        standby.promote().await;
        assert!(!is_in_recovery(&mut standby.connect().await).await);
        run(&mut reader, "insert into kept values (3)")
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_standby_stops_and_follows_again_on_its_port() {
        let primary = PostgresServer::start_primary(&[("max_connections", "400")]).await;
        let standby = primary.start_standby().await;
        let url = standby.url();
        standby.server().kill().await;
        let database = primary.database().await;
        run(&mut database.connect().await, "create table kept (id int)")
            .await
            .unwrap();
        standby.server().start_again().await;
        primary.restart(Stop::Fast).await;
        standby.wait_until_caught_up().await;
        assert_eq!(standby.url(), url);
        let mut reader = PgConnection::connect(&standby.url_of(&database))
            .await
            .unwrap();
        assert_eq!(count(&mut reader).await, 0);
    }

    #[tokio::test]
    async fn all_die_with_their_process_by_kill_9() {
        for what in ["pooler", "standby"] {
            let (mut holder, pids) = hold(what);
            holder.kill().unwrap();
            holder.wait().unwrap();
            eventually(PATIENCE, async || {
                !pids.iter().any(|pid| signal::is_alive(*pid))
            })
            .await;
        }
    }

    #[tokio::test]
    async fn what_a_killed_process_leaves_is_swept() {
        for what in ["pooler", "standby"] {
            let (mut holder, pids) = hold(what);
            // SIGKILL ends a pooler even if it is paused; a paused server does not hear that its
            // owner died.
            pids.iter().for_each(|pid| signal::pause(*pid));
            holder.kill().unwrap();
            holder.wait().unwrap();
            assert!(pids.iter().any(|pid| signal::is_alive(*pid)));

            let server = PostgresServer::shared().await;
            let _pooler = PgBouncer::start(&server, PoolMode::Session).await;

            assert!(!pids.iter().any(|pid| signal::is_alive(*pid)));
        }
    }

    fn hold(what: &str) -> (Child, Vec<i32>) {
        let mut holder = Command::new(env!("CARGO_BIN_EXE_hold-server"))
            .arg(what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let pids: Vec<i32> = line
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        assert!(pids.len() > 4, "{pids:?}");
        assert!(pids.iter().all(|pid| signal::is_alive(*pid)), "{pids:?}");
        (holder, pids)
    }

    async fn is_in_recovery(connection: &mut PgConnection) -> bool {
        let statement = sqlx::raw_sql("select pg_is_in_recovery()");
        connection.fetch_one(statement).await.unwrap().get(0)
    }

    async fn count(connection: &mut PgConnection) -> i64 {
        let statement = sqlx::raw_sql("select count(*) from kept");
        connection.fetch_one(statement).await.unwrap().get(0)
    }
}
