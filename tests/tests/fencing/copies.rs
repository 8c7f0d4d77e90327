//! Dump and restore.

use std::{path::Path, process::Command};

use sqlock::FencingToken;
use sqlock_tests::{PostgresServer, TestDatabase};

use crate::{
    kinds::{Kind, Sequence},
    schema::fenced,
    support::{ask, execute, node_with, run},
};

async fn token(database: &TestDatabase) -> FencingToken {
    let locks = node_with(database, fenced()).await;
    let guard = locks.acquire("job").await.unwrap();
    guard.token().unwrap()
}

/// One of PostgreSQL's own programs, of the server's version where it is of this machine.
async fn tool(database: &TestDatabase, name: &str, arguments: &[&str]) -> String {
    let mut connection = database.connect().await;
    let directory: String = ask(
        &mut connection,
        "select setting from pg_config where name = 'BINDIR'",
    )
    .await;
    let beside = Path::new(&directory).join(name);
    let program = if beside.exists() {
        beside
    } else {
        Path::new(name).to_owned()
    };
    let output = Command::new(&program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

async fn restore(dump: &str, database: &TestDatabase) {
    // psql's own commands are no SQL
    let sql: Vec<_> = dump
        .lines()
        .filter(|line| !line.starts_with('\\'))
        .collect();
    execute(&mut database.connect().await, &sql.join("\n")).await;
}

/// The copy's tokens are above those that the original gave after it was dumped: a resource outside
/// of the database has seen them.
#[test]
fn a_restored_copy_goes_on_above_the_original() {
    run(async || {
        let original = TestDatabase::create().await;
        Sequence::make(&original).await;
        token(&original).await;
        let url = original.url();
        let dump = tool(&original, "pg_dump", &["--inserts", "--dbname", &url]).await;
        assert!(dump.contains("sqlock_fencing_now"), "{dump}");
        let last = token(&original).await;

        let beside = TestDatabase::create().await;
        restore(&dump, &beside).await;
        let next = token(&beside).await;
        assert!(next > last, "{next} after {last}");

        let elsewhere = PostgresServer::start(&[]).await.database().await;
        restore(&dump, &elsewhere).await;
        let next = token(&elsewhere).await;
        assert!(next > last, "{next} after {last}");
    });
}
