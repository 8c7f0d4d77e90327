//! The lock is lost while the command runs.

use sqlock_tests::TestDatabase;

use crate::support::{World, until_dead};

async fn terminate_holder(world: &World) {
    let held = world.held().await;
    assert_eq!(held.len(), 1, "{held:?}");
    let database: &TestDatabase = &world.database;
    database.terminate(held[0].pid).await;
}

#[tokio::test]
async fn the_command_is_asked_to_end_and_the_code_says_why() {
    let world = World::new().await;
    let script = "trap 'touch asked; exit 0' TERM; touch started; \
                  while :; do sleep 0.05; done";
    let run = world.run(&["--grace", "60s", "k"], script);
    world.until("started").await;
    terminate_holder(&world).await;
    let ended = run.ended().await;
    ended.assert_code(76);
    assert!(world.has("asked"));
    let told = "sqlock: lock \"k\" was lost: its connection was closed; ending the command";
    assert!(ended.stderr.contains(told), "{ended:?}");
    world.run(&["k"], "exit 9").ended().await.assert_code(9);
}

#[tokio::test]
async fn one_that_will_not_end_is_killed_with_all_that_it_started() {
    let world = World::new().await;
    let script = "trap '' TERM; setsid sleep 600 & echo $! >child; echo $$ >command; wait; wait";
    let options = ["--grace", "300ms", "--lost-exit-code", "4", "k"];
    let run = world.run(&options, script);
    let pids = [world.pid("command").await, world.pid("child").await];
    terminate_holder(&world).await;
    let ended = run.ended().await;
    ended.assert_code(4);
    assert!(ended.stderr.contains("killing it"), "{ended:?}");
    for pid in pids {
        until_dead(pid).await;
    }
}

#[tokio::test]
async fn what_the_command_leaves_behind_gets_the_grace_period_and_no_more() {
    let world = World::new().await;
    let script = "sh -c 'trap \"\" TERM; echo $$ >child; while :; do sleep 0.05; done' & \
                  echo $$ >command; wait";
    let run = world.run(&["--grace", "300ms", "k"], script);
    let pids = [world.pid("command").await, world.pid("child").await];
    terminate_holder(&world).await;
    run.ended().await.assert_code(76);
    for pid in pids {
        until_dead(pid).await;
    }
}
