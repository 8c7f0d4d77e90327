//! The servers that all other tests stand on.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sqlock_tests::{PostgresServer, Stop, TestDatabase, eventually, holds_within, signal};
use sqlx::postgres::PgConnection;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn tests_share_one_server() {
    let (one, two) = tokio::join!(TestDatabase::create(), TestDatabase::create());
    assert_eq!(one.server().url(), two.server().url());
    assert_ne!(one.name(), two.name());
    assert_eq!(number(&mut one.connect().await, "select 1").await, 1);
    assert_eq!(
        text(&mut two.connect().await, "select current_database()").await,
        two.name()
    );
}

#[test]
fn the_shared_server_outlives_the_runtime_that_started_it() {
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let database = TestDatabase::create().await;
            assert_eq!(number(&mut database.connect().await, "select 1").await, 1);
        });
    }
}

#[tokio::test]
async fn a_database_is_dropped_with_its_value_even_if_in_use() {
    let database = TestDatabase::create().await;
    let server = database.server().clone();
    let count = format!(
        "select count(*)::int from pg_database where datname = '{}'",
        database.name()
    );
    let _in_use = database.connect().await;
    let mut outside = server.connect().await;
    assert_eq!(number(&mut outside, &count).await, 1);

    drop(database);

    eventually(PATIENCE, async || number(&mut outside, &count).await == 0).await;
}

#[tokio::test]
async fn advisory_locks_show_per_database() {
    let (database, other) = tokio::join!(TestDatabase::create(), TestDatabase::create());
    let mut connection = database.connect().await;
    let pid = number(&mut connection, "select pg_backend_pid()").await;
    run(
        &mut connection,
        "select pg_advisory_lock(-2), pg_advisory_lock_shared(3, 4)",
    )
    .await;

    let locks = database.advisory_locks().await;

    assert!(
        locks.iter().all(|lock| lock.granted && lock.pid == pid),
        "{locks:?}"
    );
    assert_eq!(
        locks
            .iter()
            .filter_map(sqlock_tests::AdvisoryLock::id)
            .collect::<Vec<_>>(),
        [-2]
    );
    let pair = locks.iter().find(|lock| lock.objsubid == 2).unwrap();
    assert_eq!(
        (pair.classid, pair.objid, pair.mode.as_str()),
        (3, 4, "ShareLock")
    );
    assert_eq!(other.advisory_locks().await, []);

    run(&mut connection, "select pg_advisory_unlock_all()").await;
    database.wait_until_no_advisory_locks(PATIENCE).await;
}

#[tokio::test]
async fn backends_show_and_can_be_terminated() {
    let database = TestDatabase::create().await;
    assert_eq!(database.count_connections().await, 0);
    let mut connection = database.connect().await;
    let pid = number(&mut connection, "select pg_backend_pid()").await;

    eventually(PATIENCE, async || {
        database.backends().await[0].state.as_deref() == Some("idle")
    })
    .await;
    let backends = database.backends().await;
    assert_eq!(backends.len(), 1);
    assert_eq!((backends[0].pid, backends[0].pins_snapshot), (pid, false));
    assert_eq!(backends[0].query, "select pg_backend_pid()");

    database.terminate(pid).await;
    eventually(PATIENCE, async || database.count_connections().await == 0).await;
}

#[tokio::test]
async fn a_private_server_has_its_own_settings() {
    let server =
        PostgresServer::start(&[("max_locks_per_transaction", "512"), ("work_mem", "5MB")]).await;
    let mut connection = server.connect().await;
    assert_eq!(
        text(&mut connection, "show max_locks_per_transaction").await,
        "512"
    );
    assert_eq!(text(&mut connection, "show work_mem").await, "5MB");
    assert_eq!(text(&mut connection, "show max_connections").await, "300");
}

#[test]
fn no_server_to_be_had_says_what_to_install() {
    let output = Command::new(env!("CARGO_BIN_EXE_hold-server"))
        .env_remove("SQLOCK_TEST_POSTGRES_SOURCE")
        // Where no engine listens, and no image is: neither binaries nor a container.
        .env("SQLOCK_TEST_POSTGRES_SOURCE", "container")
        .env("DOCKER_HOST", "tcp://127.0.0.1:1")
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for hint in [
        "apt-get install postgresql",
        "container engine",
        "SQLOCK_TEST_POSTGRES_URL",
    ] {
        assert!(message.contains(hint), "{message}");
    }
}

#[tokio::test]
async fn faults_are_refused_on_the_shared_server() {
    // Else one test's fault would be every other's.
    let server = PostgresServer::shared().await;
    let stop = tokio::spawn(async move { server.stop(Stop::Fast).await });
    let message = panic_message(stop.await.unwrap_err().into_panic());
    assert!(message.contains("PostgresServer::start"), "{message}");
}

/// What a server in a container cannot do.
mod local_binaries {
    use super::*;

    #[tokio::test]
    async fn a_wrong_setting_fails_with_the_servers_own_words() {
        let start =
            tokio::spawn(async { PostgresServer::start(&[("max_connections", "many")]).await });
        let message = panic_message(start.await.unwrap_err().into_panic());
        assert!(message.contains("max_connections"), "{message}");
    }

    #[tokio::test]
    async fn a_private_server_stops_and_starts_on_its_port_and_data() {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        run(&mut database.connect().await, "create table kept (id int)").await;
        for stop in [Stop::Fast, Stop::Immediate] {
            server.restart(stop).await;
            assert_eq!(
                number(
                    &mut database.connect().await,
                    "select count(*)::int from kept"
                )
                .await,
                0
            );
        }
    }

    #[tokio::test]
    async fn a_killed_server_loses_no_commit() {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        let mut connection = database.connect().await;
        run(&mut connection, "create table kept (id int)").await;
        run(&mut connection, "insert into kept values (1)").await;
        let pids = server.processes();
        assert!(pids.len() > 3, "{pids:?}");

        server.kill().await;

        assert!(!pids.iter().any(|pid| signal::is_alive(*pid)));
        assert!(server.processes().is_empty());
        server.start_again().await;
        assert_eq!(
            number(
                &mut database.connect().await,
                "select count(*)::int from kept"
            )
            .await,
            1
        );
    }

    #[tokio::test]
    async fn a_paused_server_answers_once_resumed() {
        let server = PostgresServer::start(&[]).await;
        let mut connection = server.connect().await;
        server.pause();
        let answer = tokio::time::timeout(
            Duration::from_millis(300),
            number(&mut connection, "select 1"),
        )
        .await;
        assert!(answer.is_err(), "a paused server answered");
        server.resume();
        assert_eq!(number(&mut server.connect().await, "select 1").await, 1);
    }

    #[tokio::test]
    async fn a_paused_backend_stops_nobody_else() {
        let server = PostgresServer::start(&[]).await;
        let mut connection = server.connect().await;
        let pid = number(&mut connection, "select pg_backend_pid()").await;
        server.pause_backend(pid);
        let answer = holds_within(Duration::from_millis(300), async || {
            let look = tokio::time::timeout(
                Duration::from_millis(300),
                number(&mut connection, "select 1"),
            );
            look.await.is_ok()
        });
        assert!(!answer.await, "a paused backend answered");
        assert_eq!(number(&mut server.connect().await, "select 1").await, 1);
        server.resume_backend(pid);
    }

    #[tokio::test]
    async fn a_dropped_server_is_gone() {
        let server = PostgresServer::start(&[]).await;
        let pids = server.processes();
        drop(server);
        assert!(!pids.iter().any(|pid| signal::is_alive(*pid)));
    }

    #[tokio::test]
    async fn a_dropped_server_is_gone_even_if_paused() {
        let server = PostgresServer::start(&[]).await;
        let pids = server.processes();
        server.pause();
        drop(server);
        assert!(!pids.iter().any(|pid| signal::is_alive(*pid)));
    }

    #[tokio::test]
    async fn a_server_dies_with_its_process_by_kill_9() {
        let mut holder = hold_server();
        let pids = pids_of(&mut holder);

        holder.kill().unwrap();
        holder.wait().unwrap();

        eventually(PATIENCE, async || {
            !pids.iter().any(|pid| signal::is_alive(*pid))
        })
        .await;
    }

    #[tokio::test]
    async fn what_a_killed_process_leaves_is_swept() {
        let mut holder = hold_server();
        let pids = pids_of(&mut holder);
        // A paused process does not hear the kernel's word that its owner died.
        pids.iter().for_each(|pid| signal::pause(*pid));
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(pids.iter().all(|pid| signal::is_alive(*pid)));

        let _server = PostgresServer::start(&[]).await;

        assert!(!pids.iter().any(|pid| signal::is_alive(*pid)));
    }

    fn hold_server() -> Child {
        Command::new(env!("CARGO_BIN_EXE_hold-server"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn pids_of(holder: &mut Child) -> Vec<i32> {
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let pids: Vec<i32> = line
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        assert!(
            pids.len() > 3 && pids.iter().all(|pid| signal::is_alive(*pid)),
            "{pids:?}"
        );
        pids
    }
}

async fn number(connection: &mut PgConnection, statement: &str) -> i32 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .fetch_one(connection)
        .await
        .unwrap()
}

async fn text(connection: &mut PgConnection, statement: &str) -> String {
    sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .fetch_one(connection)
        .await
        .unwrap()
}

async fn run(connection: &mut PgConnection, statement: &str) {
    sqlx::query(sqlx::AssertSqlSafe(statement))
        .execute(connection)
        .await
        .unwrap();
}

fn panic_message(payload: Box<dyn std::any::Any + Send>) -> String {
    let message = payload.downcast::<String>().map(|message| *message);
    message.unwrap_or_else(|payload| (*payload.downcast::<&str>().unwrap()).to_owned())
}
