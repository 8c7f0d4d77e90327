//! Leases, on a server and in a file.

use std::time::Duration;

use tokio::{process::Command, time::sleep};

use crate::support::{Ended, World};

/// Without a server, and with a state directory of the test's own.
fn local(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.sqlock(arguments);
    command
        .env_remove("DATABASE_URL")
        .env("XDG_STATE_HOME", world.path("state"));
    command
}

async fn ended(world: &World, command: Command) -> Ended {
    world.start(command).ended().await
}

#[tokio::test]
async fn without_a_server_the_lock_is_in_a_file_which_is_told_once() {
    let world = World::new().await;
    let script = "echo \"$SQLOCK_KEY $SQLOCK_TOKEN\"";
    let arguments = ["run", "daily", "--", "sh", "-c", script];
    let first = ended(&world, local(&world, &arguments)).await;
    first.assert_code(0);
    assert!(first.stderr.contains("state/sqlock/locks.db"), "{first:?}");
    assert_eq!(first.stdout, "daily 1\n");
    let second = ended(&world, local(&world, &arguments)).await;
    second.assert_code(0);
    assert_eq!(second.stderr, "");
    assert_eq!(second.stdout, "daily 2\n");
}

#[tokio::test]
async fn of_five_without_a_server_one_runs() {
    let world = World::new().await;
    let script = "echo ran >>ran; until [ -e enough ]; do sleep 0.05; done";
    let arguments = ["run", "--no-wait", "daily", "--", "sh", "-c", script];
    let running: Vec<_> = (0..5)
        .map(|_| world.start(local(&world, &arguments)))
        .collect();
    world.until("ran").await;
    let mut codes = Vec::new();
    sleep(Duration::from_secs(2)).await;
    world.write("enough");
    for one in running {
        codes.push(one.ended().await.code.unwrap());
    }
    codes.sort_unstable();
    assert_eq!(codes, [0, 75, 75, 75, 75]);
    assert_eq!(world.lines("ran").len(), 1);
}

#[tokio::test]
async fn a_lease_on_a_server_makes_its_table_and_shows_its_holder() {
    let world = World::new().await;
    let arguments = ["--backend", "ttl", "--label", "the nightly one", "daily"];
    let holder = world.run(&arguments, "echo $SQLOCK_TOKEN >token; exec sleep 600");
    world.until("token").await;
    let refused = world.sqlock(&["run", "--backend=ttl", "--no-wait", "daily", "--", "true"]);
    let refused = ended(&world, refused).await;
    refused.assert_code(75);
    assert!(
        refused.stderr.contains("the nightly one (pid "),
        "{refused:?}"
    );
    drop(holder);
}

#[tokio::test]
async fn hold_at_least_outlasts_the_command() {
    let world = World::new().await;
    let arguments = ["run", "--hold-at-least", "1m", "cron", "--", "true"];
    ended(&world, local(&world, &arguments))
        .await
        .assert_code(0);
    let arguments = ["run", "--no-wait", "cron", "--", "true"];
    ended(&world, local(&world, &arguments))
        .await
        .assert_code(75);
}

#[tokio::test]
async fn a_lease_that_is_taken_away_ends_the_command() {
    let world = World::new().await;
    let arguments = ["--backend", "ttl", "--ttl", "1s", "daily"];
    let running = world.run(&arguments, "touch started; exec sleep 600");
    world.until("started").await;
    let mut connection = world.database.connect().await;
    sqlx::query("update sqlock_leases set owner = 'thief'")
        .execute(&mut connection)
        .await
        .unwrap();
    let ended = running.ended().await;
    ended.assert_code(76);
    assert!(ended.stderr.contains("another holder took it"), "{ended:?}");
}

#[tokio::test]
async fn what_a_backend_cannot_do_is_refused() {
    let world = World::new().await;
    for arguments in [
        vec!["--backend=session", "--ttl=1s"],
        vec!["--backend=session", "--hold-at-least=1s"],
        vec!["--backend=session", "--file=x"],
        vec!["--backend=ttl", "--shared"],
        vec!["--backend=sqlite", "--shared"],
        vec!["--backend=sqlite", "--file=:memory:"],
        vec!["--backend=ttl", "--ttl=1ms"],
    ] {
        let all = [&["run"], &arguments[..], &["k", "--", "true"]].concat();
        let ended = ended(&world, world.sqlock(&all)).await;
        ended.assert_code(64);
        assert!(ended.stderr.starts_with("sqlock: "), "{ended:?}");
    }
}
