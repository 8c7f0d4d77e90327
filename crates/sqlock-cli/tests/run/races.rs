//! Who runs, and who does not.

use std::time::Duration;

use sqlock_tests::eventually;

use crate::support::{PATIENCE, World};

#[tokio::test]
async fn of_five_that_do_not_wait_exactly_one_runs() {
    let world = World::new().await;
    let script = "echo ran >>runs; until [ -e go ]; do sleep 0.05; done";
    let options = ["--no-wait", "daily-report"];
    let mut racing: Vec<_> = (0..5).map(|_| world.run(&options, script)).collect();
    let mut refused = Vec::new();
    eventually(PATIENCE, async || {
        for racer in std::mem::take(&mut racing) {
            match racer.has_ended() {
                true => refused.push(racer),
                false => racing.push(racer),
            }
        }
        refused.len() == 4
    })
    .await;
    world.write("go");
    for racer in refused {
        let ended = racer.ended().await;
        ended.assert_code(75);
        assert!(
            ended.stderr.contains("lock \"daily-report\" is held by"),
            "{ended:?}"
        );
    }
    racing.remove(0).ended().await.assert_code(0);
    assert_eq!(world.lines("runs"), ["ran"]);
    world.until_free().await;
}

#[tokio::test]
async fn those_that_wait_run_one_after_another() {
    let world = World::new().await;
    let script = "mkdir inside || echo overlap >>overlaps; \
                  sleep 0.05; echo ran >>runs; rmdir inside";
    let options = ["--wait", "60s", "daily-report"];
    let racing: Vec<_> = (0..5).map(|_| world.run(&options, script)).collect();
    for racer in racing {
        racer.ended().await.assert_code(0);
    }
    assert_eq!(world.lines("runs").len(), 5);
    assert!(!world.has("overlaps"));
}

#[tokio::test]
async fn a_wait_that_is_in_vain_ends_with_the_code_of_a_conflict() {
    let world = World::new().await;
    let holder = world.run(
        &["k"],
        "touch started; until [ -e go ]; do sleep 0.05; done",
    );
    world.until("started").await;
    let waiter = world
        .run(&["--wait", "200ms", "k"], "touch ran")
        .ended()
        .await;
    waiter.assert_code(75);
    assert!(waiter.stderr.contains("gave up after 200ms"), "{waiter:?}");
    let options = ["--no-wait", "--conflict-exit-code", "3", "k"];
    world
        .run(&options, "touch ran")
        .ended()
        .await
        .assert_code(3);
    assert!(!world.has("ran"));
    world.write("go");
    holder.ended().await.assert_code(0);
}

#[tokio::test]
async fn readers_run_together_and_a_writer_waits_for_them() {
    let world = World::new().await;
    let read = |name: &str| {
        let script = format!("touch {name}; until [ -e go ]; do sleep 0.05; done");
        world.run(&["--shared", "data"], &script)
    };
    let readers = [read("one"), read("two")];
    world.until("one").await;
    world.until("two").await;
    let refused = world
        .run(&["--no-wait", "data"], "touch wrote")
        .ended()
        .await;
    refused.assert_code(75);
    assert!(refused.stderr.contains(", and one other"), "{refused:?}");
    let writer = world.run(&["data"], "touch wrote");
    world.until_sessions(3).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!world.has("wrote"));
    world.write("go");
    for reader in readers {
        reader.ended().await.assert_code(0);
    }
    writer.ended().await.assert_code(0);
    assert!(world.has("wrote"));
}
