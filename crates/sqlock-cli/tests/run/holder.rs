//! Who holds the lock, for those who wait.

use sqlock_tests::eventually;

use crate::support::{PATIENCE, World};

#[tokio::test]
async fn a_waiting_command_says_once_who_holds_the_lock() {
    let world = World::new().await;
    let holder = world.run(
        &["daily"],
        "touch started; until [ -e go ]; do sleep 0.05; done",
    );
    world.until("started").await;
    let waiter = world.run(&["daily"], "true");
    eventually(PATIENCE, async || waiter.stderr().contains("held by")).await;
    let place = format!("sqlock run daily@{}:{} (pid ", hostname(), holder.pid());
    // long enough for a second look
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    world.write("go");
    holder.ended().await.assert_code(0);
    let ended = waiter.ended().await;
    ended.assert_code(0);
    let line = format!("sqlock: waiting for lock \"daily\", held by {place}");
    assert!(ended.stderr.starts_with(&line), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
}

fn hostname() -> String {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_str().unwrap();
    name[..name.len().min(24)].to_owned()
}
