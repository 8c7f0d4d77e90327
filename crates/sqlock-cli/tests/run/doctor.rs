//! `sqlock doctor`: what it says of servers, poolers and standbys, and what it keeps to itself.

use serde_json::Value;
use sqlock_tests::{PgBouncer, PoolMode, PostgresServer, TestDatabase};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::net::TcpListener;

use crate::{
    secrets::{PASSWORD, assert_silent, url_of_app, world_with_passwords},
    support::{Ended, World},
};

async fn doctor(world: &World, arguments: &[&str]) -> Ended {
    let all = [&["doctor"], arguments].concat();
    world.start(world.sqlock(&all)).ended().await
}

async fn json(world: &World, url: &str) -> (Value, Option<i32>) {
    let ended = doctor(world, &["--json", url]).await;
    let json = serde_json::from_str(&ended.stdout);
    let json = json.unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!(ended.stderr, "");
    (json, ended.code)
}

async fn execute(database: &TestDatabase, sql: &str) {
    let mut connection = database.connect().await;
    let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    sql.execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_direct_server_is_told_and_session_is_recommended() {
    let world = World::new().await;
    let options = world.database.options();
    let place = format!(
        "{}:{}/{}",
        options.get_host(),
        options.get_port(),
        world.database.name()
    );
    // by the variable
    let ended = doctor(&world, &[]).await;
    ended.assert_code(0);
    assert_eq!(ended.stderr, "");
    for told in [
        &format!("server       {place}\n"),
        "version      PostgreSQL ",
        "role         primary\n",
        "pooler       none seen: ",
        "session      locks are PostgreSQL's own\n",
        "  max_connections  ",
        "use          session: a connection has a server process of its own",
    ] {
        assert!(ended.stdout.contains(told), "{told}: {}", ended.stdout);
    }
    let (report, code) = json(&world, &world.database.url()).await;
    assert_eq!(code, Some(0));
    assert_eq!(report["server"], place.as_str());
    assert_eq!(report["role"], "primary");
    assert_eq!(report["engine"], "postgresql");
    assert_eq!(report["pooler"]["is"], "not_seen");
    assert_eq!(report["session_locks"]["is"], "genuine");
    assert_eq!(report["recommendation"]["backend"], "session");
    assert_eq!(report["doubt"], Value::Null);
    assert!(report["version"]["number"].as_u64().unwrap() > 120_000);
    assert!(report["settings"].as_array().unwrap().len() > 10);
    // the look leaves nothing behind
    assert_eq!(world.database.advisory_locks().await, []);
}

#[tokio::test]
async fn a_setting_that_endangers_locks_is_marked_and_explained() {
    let world = World::new().await;
    let name = world.database.name();
    let setting = "idle_in_transaction_session_timeout";
    execute(
        &world.database,
        &format!("alter database {name} set {setting} = '61s'"),
    )
    .await;
    let ended = doctor(&world, &[]).await;
    ended.assert_code(0);
    for told in [
        &format!("! {setting:<36} 61000 ms\n"),
        &format!("! {setting} = 61000 ms (for xact)\n"),
        "  set it to 0 for the role, or above the longest work under a lock\n",
    ] {
        assert!(ended.stdout.contains(told), "{told}: {}", ended.stdout);
    }
    let (report, _) = json(&world, &world.database.url()).await;
    let dangers = report["dangers"].as_array().unwrap();
    let danger = dangers.iter().find(|danger| danger["setting"] == setting);
    let danger = danger.unwrap_or_else(|| panic!("{dangers:?}"));
    assert_eq!(danger["value"], "61000 ms");
    assert_eq!(danger["backends"], serde_json::json!(["xact"]));
}

#[tokio::test]
async fn a_pooler_is_told_with_its_mode() {
    let world = World::new().await;
    for (mode, is, backend) in [
        (PoolMode::Session, "session", "session"),
        (PoolMode::Transaction, "transaction", "xact"),
        (PoolMode::Statement, "statement", "ttl"),
    ] {
        let pooler = PgBouncer::start(world.database.server(), mode).await;
        let url = world.database.url_through(&pooler);
        let (report, code) = json(&world, &url).await;
        assert_eq!(code, Some(0));
        assert_eq!(report["pooler"]["is"], is, "{report}");
        assert_eq!(report["recommendation"]["backend"], backend, "{report}");
        let ended = doctor(&world, &[&url]).await;
        ended.assert_code(0);
        let told = format!("pooler       in {is} mode: ");
        assert!(ended.stdout.contains(&told), "{ended:?}");
        let told = format!("\nuse          {backend}: ");
        assert!(ended.stdout.contains(&told), "{ended:?}");
    }
    assert_eq!(world.database.advisory_locks().await, []);
}

#[tokio::test]
async fn a_standby_keeps_no_locks_and_has_a_code_of_its_own() {
    let primary = PostgresServer::start_primary(&[]).await;
    let standby = primary.start_standby().await;
    let world = World::on(primary.database().await);
    let (report, code) = json(&world, &standby.url()).await;
    assert_eq!(code, Some(1));
    assert_eq!(report["role"], "standby");
    assert_eq!(report["recommendation"]["backend"], Value::Null);
    let ended = doctor(&world, &[&standby.url()]).await;
    ended.assert_code(1);
    for told in [
        "role         standby: its advisory locks are its own",
        "use          none: this is a standby, which can keep no locks; connect to the primary",
    ] {
        assert!(ended.stdout.contains(told), "{ended:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_silent_is_an_error() {
    let world = World::new().await;
    let ended = doctor(&world, &["postgres://app@127.0.0.1:1/app"]).await;
    ended.assert_code(69);
    let told = "sqlock: cannot look at 127.0.0.1:1/app: ";
    assert!(ended.stderr.starts_with(told), "{ended:?}");

    // it takes connections, and answers nothing
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://app@{}/app", silent.local_addr().unwrap());
    let ended = doctor(&world, &["--timeout", "300ms", &url]).await;
    ended.assert_code(69);
    let told = "no answer within 300ms (--timeout)";
    assert!(ended.stderr.contains(told), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

#[tokio::test]
async fn a_password_is_asked_for_and_never_shown() {
    let world = world_with_passwords().await;
    let without = url_of_app(&world.database, "").replace(":@", "@");
    let ended = doctor(&world, &[&without]).await;
    ended.assert_code(69);
    for told in ["as user app", "PGPASSWORD"] {
        assert!(ended.stderr.contains(told), "{ended:?}");
    }
    let right = url_of_app(&world.database, PASSWORD);
    let wrong = url_of_app(&world.database, &format!("{PASSWORD}-not"));
    for (url, code) in [(right, 0), (wrong, 69)] {
        for arguments in [&["doctor"][..], &["doctor", "--json"]] {
            let mut command = world.sqlock(arguments);
            command.env("DATABASE_URL", &url).env("SQLOCK_LOG", "trace");
            let ended = world.start(command).ended().await;
            ended.assert_code(code);
            assert_silent(&ended);
        }
    }
    let mut command = world.sqlock(&["doctor", &without]);
    command.env("PGPASSWORD", PASSWORD);
    let ended = world.start(command).ended().await;
    ended.assert_code(0);
    assert_silent(&ended);
}

#[tokio::test]
async fn usage_has_a_code_of_its_own() {
    let world = World::new().await;
    for arguments in [
        &["mysql://app@h/d"][..],
        &["postgres://h:port/d"],
        &["--timeout", "soon"],
        &["--jason"],
    ] {
        doctor(&world, arguments).await.assert_code(64);
    }
    let mut command = world.sqlock(&["doctor"]);
    command.env_remove("DATABASE_URL");
    let ended = world.start(command).ended().await;
    ended.assert_code(64);
    assert!(ended.stderr.contains("DATABASE_URL"), "{ended:?}");
    let help = doctor(&world, &["--help"]).await;
    help.assert_code(0);
    assert!(help.stdout.contains("Exit codes:"), "{help:?}");
    assert!(!help.stdout.contains(&world.database.url()), "{help:?}");
}
