//! At a terminal, which `script` of util-linux provides.

use std::process::Stdio;

use rustix::process::Signal;
use sqlock_tests::{eventually, signal};
use tokio::{
    io::AsyncWriteExt as _,
    process::{ChildStdin, Command},
};

use crate::support::{PATIENCE, Running, World, until_dead};

/// `sqlock run k -- sh -c script`, and the keyboard of its terminal.
fn at_terminal(world: &World, script: &str) -> (Running, ChildStdin) {
    std::fs::write(world.path("script.sh"), script).unwrap();
    let sqlock = env!("CARGO_BIN_EXE_sqlock");
    let mut command = Command::new("env");
    command
        .args([
            "--default-signal",
            "script",
            "--quiet",
            "--return",
            "--command",
        ])
        .arg(format!("exec '{sqlock}' run k -- sh ./script.sh"))
        .arg("/dev/null")
        .current_dir(world.path("."))
        .env("DATABASE_URL", world.database.url())
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .kill_on_drop(true);
    let mut run = world.start(command);
    let keyboard = run.take_stdin();
    (run, keyboard)
}

#[tokio::test]
async fn ctrl_c_reaches_the_command_once() {
    let world = World::new().await;
    let script = "trap 'echo INT >>got' INT; echo $PPID >guardian; \
                  until [ -e go ]; do sleep 0.05; done; exit 7";
    let (run, mut keyboard) = at_terminal(&world, script);
    let guardian = world.pid("guardian").await;
    keyboard.write_all(b"\x03").await.unwrap();
    world.until_lines("got", 1).await;
    // time enough for a second one to arrive, if it were passed on
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert_eq!(world.lines("got").len(), 1);
    // sent to sqlock alone it is passed on
    let sqlock = parent(guardian);
    rustix::process::kill_process(rustix::process::Pid::from_raw(sqlock).unwrap(), Signal::INT)
        .unwrap();
    world.until_lines("got", 2).await;
    world.write("go");
    run.ended().await.assert_code(7);
    world.until_free().await;
}

#[tokio::test]
async fn the_command_can_read_from_the_terminal() {
    let world = World::new().await;
    let script = "touch started; read -r line </dev/tty; echo \"$line\" >got";
    let (run, mut keyboard) = at_terminal(&world, script);
    world.until("started").await;
    keyboard.write_all(b"typed\n").await.unwrap();
    world.until_lines("got", 1).await;
    assert_eq!(world.lines("got"), ["typed"]);
    run.ended().await.assert_code(0);
}

#[tokio::test]
async fn killed_sqlock_takes_its_command_with_it_there_too() {
    let world = World::new().await;
    let script = "trap '' HUP; sleep 600 & echo $! >child; echo $PPID >guardian; \
                  echo $$ >command; wait";
    let (_run, _keyboard) = at_terminal(&world, script);
    let pids = [world.pid("command").await, world.pid("child").await];
    signal::kill(parent(world.pid("guardian").await));
    for pid in pids {
        until_dead(pid).await;
    }
    world.until_free().await;
}

#[tokio::test]
async fn a_waiting_command_shows_a_spinner() {
    let world = World::new().await;
    let holder = world.run(
        &["k"],
        "touch started; until [ -e go ]; do sleep 0.05; done",
    );
    world.until("started").await;
    let (waiter, _keyboard) = at_terminal(&world, "true");
    eventually(PATIENCE, async || {
        let shown = waiter.stdout();
        shown.contains("waiting for lock \"k\"") && shown.contains("held by sqlock run k@")
    })
    .await;
    world.write("go");
    holder.ended().await.assert_code(0);
    waiter.ended().await.assert_code(0);
}

fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(1).unwrap().parse().unwrap()
}
