//! Signals, while the command runs and while the lock is waited for.

use rustix::process::Signal;
use sqlock_tests::signal::is_alive;
use tokio::process::Command;

use crate::support::World;

const SIGNALS: [(Signal, &str, i32); 4] = [
    (Signal::HUP, "HUP", 129),
    (Signal::INT, "INT", 130),
    (Signal::QUIT, "QUIT", 131),
    (Signal::TERM, "TERM", 143),
];

#[tokio::test]
async fn signals_are_passed_on_and_the_lock_stays_until_the_command_ends() {
    let world = World::new().await;
    for (signal, name, _) in SIGNALS {
        let script = format!(
            "trap 'touch got-{name}' {name}; touch started-{name}; \
             until [ -e go-{name} ]; do sleep 0.05; done; exit 7"
        );
        let run = world.run(&["k"], &script);
        world.until(&format!("started-{name}")).await;
        run.signal(signal);
        world.until(&format!("got-{name}")).await;
        assert_eq!(world.held().await.len(), 1);
        world.write(&format!("go-{name}"));
        run.ended().await.assert_code(7);
        world.until_free().await;
    }
}

#[tokio::test]
async fn a_command_that_does_not_handle_a_signal_ends_by_it() {
    let world = World::new().await;
    for (signal, name, code) in SIGNALS {
        // the shell's child gets it as well
        let script = format!("sleep 600 & echo $! >child-{name}; wait");
        let run = world.run(&["k"], &script);
        let child = world.pid(&format!("child-{name}")).await;
        run.signal(signal);
        run.ended().await.assert_code(code);
        // a shell without job control lets its children ignore these two
        if name != "INT" && name != "QUIT" {
            crate::support::until_dead(child).await;
        } else if is_alive(child) {
            sqlock_tests::signal::kill(child);
        }
    }
    world.until_free().await;
}

#[tokio::test]
async fn a_signal_ends_the_wait_at_once() {
    let world = World::new().await;
    let holder = world.run(
        &["k"],
        "touch started; until [ -e go ]; do sleep 0.05; done",
    );
    world.until("started").await;
    for (signal, _, code) in SIGNALS {
        let waiter = world.run(&["k"], "touch ran");
        world.until_sessions(2).await;
        waiter.signal(signal);
        waiter.ended().await.assert_code(code);
        world.until_sessions(1).await;
    }
    assert_eq!(world.held().await.len(), 1);
    assert!(!world.has("ran"));
    world.write("go");
    holder.ended().await.assert_code(0);
    world.until_free().await;
}

#[tokio::test]
async fn what_nohup_ignores_stays_ignored() {
    let world = World::new().await;
    let script = "touch started; until [ -e go ]; do sleep 0.05; done";
    let sqlock = world.sqlock(&["run", "k", "--", "sh", "-c", script]);
    let mut command = Command::new("env");
    command
        .args(["--ignore-signal=HUP", env!("CARGO_BIN_EXE_sqlock")])
        .args(["run", "k", "--", "sh", "-c", script])
        .current_dir(sqlock.as_std().get_current_dir().unwrap())
        .env("DATABASE_URL", world.database.url())
        .kill_on_drop(true);
    let run = world.start(command);
    world.until("started").await;
    run.signal(Signal::HUP);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    world.write("go");
    run.ended().await.assert_code(0);
}
