//! `--fencing`: advisory locks have tokens too.

use crate::support::World;

const TELL: &str = "echo \"$SQLOCK_TOKEN\"";

async fn told(world: &World, arguments: &[&str]) -> String {
    let ended = world.run(arguments, TELL).ended().await;
    ended.assert_code(0);
    ended.stdout.trim_end().to_owned()
}

/// Whatever the way in, and whatever came before: the tables are made by the first.
#[tokio::test]
async fn tokens_rise_over_both_kinds_of_advisory_locks() {
    let world = World::new().await;
    let mut last = 0;
    for backend in ["session", "xact", "auto", "session"] {
        let told = told(&world, &["--fencing", "--backend", backend, "daily"]).await;
        let token: i64 = told
            .parse()
            .unwrap_or_else(|_| panic!("{backend}: {told:?}"));
        assert!(token > last, "{backend}: {token} after {last}");
        last = token;
    }
}

#[tokio::test]
async fn without_it_advisory_locks_have_none_and_nothing_is_made() {
    let world = World::new().await;
    assert_eq!(told(&world, &["daily"]).await, "");
    let mut connection = world.database.connect().await;
    let tables = "select count(*) from pg_tables where schemaname = 'public'";
    let tables: i64 = sqlx::query_scalar(tables)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(tables, 0);
}

/// Leases have one in any case.
#[tokio::test]
async fn with_leases_it_changes_nothing() {
    let world = World::new().await;
    let mut last = 0;
    for arguments in [
        &["--backend", "ttl", "daily"][..],
        &["--fencing", "--backend", "ttl", "daily"],
    ] {
        let token: i64 = told(&world, arguments).await.parse().unwrap();
        assert!(token > last, "{token} after {last}");
        last = token;
    }
}

#[tokio::test]
async fn where_the_tables_cannot_be_made_the_command_does_not_run() {
    let world = World::new().await;
    let mut connection = world.database.connect().await;
    let taken = "create table sqlock_fencing (something_else text)";
    sqlx::query(taken).execute(&mut connection).await.unwrap();
    let ended = world
        .run(&["--fencing", "daily"], "touch ran")
        .ended()
        .await;
    ended.assert_code(69);
    assert!(ended.stderr.contains("sqlock_fencing"), "{ended:?}");
    assert!(!world.path("ran").exists());
}
