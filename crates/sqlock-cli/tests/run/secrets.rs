//! No password in any output, nor in the arguments of any process that we start.

use std::fs;

use sqlock_tests::{PostgresServer, TestDatabase};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::support::{Ended, World, children};

pub(crate) const PASSWORD: &str = "S3cr3t~hunter2";

pub(crate) fn assert_silent(ended: &Ended) {
    for piece in [PASSWORD, "S3cr3t", "hunter2"] {
        assert!(!ended.stderr.contains(piece), "{ended:?}");
        assert!(!ended.stdout.contains(piece), "{ended:?}");
    }
}

async fn run_with_url(world: &World, url: &str, arguments: &[&str]) -> Ended {
    let mut command = world.sqlock(arguments);
    command.env("DATABASE_URL", url).env("SQLOCK_LOG", "trace");
    let ended = world.start(command).ended().await;
    assert_silent(&ended);
    ended
}

/// On a server that asks everybody but its superuser for a password.
pub(crate) async fn world_with_passwords() -> World {
    let database = PostgresServer::start(&[]).await.database().await;
    let mut connection = database.connect().await;
    let file: String = sqlx::query_scalar("show hba_file")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let setup = format!(
        "set password_encryption = 'scram-sha-256'; \
         create role app login password '{PASSWORD}'; \
         copy (select unnest(array['local all all trust', 'host all app all scram-sha-256', \
               'host all all all trust'])) to '{file}'; \
         select pg_reload_conf()"
    );
    sqlx::raw_sql(AssertSqlSafe(setup))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    until_asked_for_a_password(&database).await;
    World::on(database)
}

pub(crate) fn url_of_app(database: &TestDatabase, password: &str) -> String {
    let options = database.options();
    let (host, port) = (options.get_host(), options.get_port());
    format!(
        "postgres://app:{password}@{host}:{port}/{}",
        database.name()
    )
}

async fn until_asked_for_a_password(database: &TestDatabase) {
    let url = url_of_app(database, "wrong");
    sqlock_tests::eventually(crate::support::PATIENCE, async || {
        sqlx::PgConnection::connect(&url).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn a_password_is_used_and_never_told() {
    let world = world_with_passwords().await;
    let right = url_of_app(&world.database, PASSWORD);
    let ended = run_with_url(&world, &right, &["run", "k", "--", "true"]).await;
    ended.assert_code(0);
    let wrong = url_of_app(&world.database, &format!("{PASSWORD}-not"));
    let ended = run_with_url(&world, &wrong, &["run", "k", "--", "true"]).await;
    ended.assert_code(69);
    let told = "password authentication failed for user \"app\"";
    assert!(ended.stderr.contains(told), "{ended:?}");
}

#[tokio::test]
async fn errors_do_not_tell_it() {
    let world = World::new().await;
    let options = world.database.options();
    let (host, port) = (options.get_host(), options.get_port());
    for (place, code) in [
        ("127.0.0.1:1/db".to_owned(), 69),
        ("no-such-host.invalid/db".to_owned(), 69),
        (format!("{host}:{port}/no_such_database"), 69),
        ("127.0.0.1:port/db".to_owned(), 64),
        ("127.0.0.1:1/db?sslmode=nonsense".to_owned(), 64),
        (
            "127.0.0.1/db?sslrootcert=/no/such/file&sslmode=verify-full".to_owned(),
            69,
        ),
    ] {
        for scheme in ["postgres", "postgresql"] {
            let url = format!("{scheme}://app:{PASSWORD}@{place}");
            let ended = run_with_url(&world, &url, &["run", "k", "--", "true"]).await;
            ended.assert_code(code);
        }
    }
    for url in [
        format!("mysql://app:{PASSWORD}@host/db"),
        format!("postgres:/app:{PASSWORD}@host/db"),
        format!("postgres://app:{PASSWORD}/@host/db"),
        PASSWORD.to_owned(),
    ] {
        let ended = run_with_url(&world, &url, &["run", "k", "--", "true"]).await;
        assert!(matches!(ended.code, Some(64 | 69)), "{ended:?}");
    }
}

#[tokio::test]
async fn a_url_at_the_wrong_place_is_not_repeated() {
    let world = World::new().await;
    let url = format!("postgres://app:{PASSWORD}@127.0.0.1:1/db");
    let wait = format!("--wait={url}");
    for arguments in [
        &["run", &url][..],
        &["run", "k", &url, "--", "true"],
        &["run", &wait, "k", "--", "true"],
        &[&url],
        &["run", "--ulr", &url, "k", "--", "true"],
    ] {
        run_with_url(&world, "", arguments).await.assert_code(64);
    }
}

#[tokio::test]
async fn the_processes_in_between_do_not_show_it() {
    let world = World::new().await;
    let url = world.database.url();
    let script = "touch started; exec sleep 600";
    let mut command = world.sqlock(&["run", "--url", &url, "k", "--", "sh", "-c", script]);
    command.env_remove("DATABASE_URL");
    let run = world.start(command);
    world.until("started").await;
    let guardian = children(run.pid());
    assert_eq!(guardian.len(), 1);
    let arguments = fs::read_to_string(format!("/proc/{}/cmdline", guardian[0])).unwrap();
    assert!(arguments.contains("sleep 600"), "{arguments}");
    assert!(!arguments.contains("://"), "{arguments}");
}
