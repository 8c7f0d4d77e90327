//! `kill -9`, at whatever it is aimed.

use std::{collections::HashSet, fs, os::fd::OwnedFd, time::Duration};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use sqlock_tests::{eventually, signal};
use tokio::process::Command;

use crate::support::{PATIENCE, Running, World, children, until_dead};

/// A command with a child, a grandchild in a session of its own, and an orphan.
const FAMILY: &str = "\
    sleep 600 & echo $! >child
    setsid sh -c 'echo $$ >session; sleep 600 & echo $! >grandchild; wait' &
    sh -c 'sleep 600 & echo $! >orphan'
    trap '' TERM HUP INT
    echo $$ >command; wait";

async fn family(world: &World) -> (Running, Vec<i32>) {
    let run = world.run(&["k"], FAMILY);
    let mut pids = Vec::new();
    for name in ["command", "child", "session", "grandchild", "orphan"] {
        let pid = world.pid(name).await;
        assert!(signal::is_alive(pid), "{name}");
        pids.push(pid);
    }
    (run, pids)
}

#[tokio::test]
async fn killed_sqlock_takes_all_that_its_command_started_with_it() {
    let world = World::new().await;
    let (run, pids) = family(&world).await;
    signal::kill(run.pid());
    for pid in pids {
        until_dead(pid).await;
    }
    world.run(&["k"], "touch next").ended().await.assert_code(0);
    assert!(world.has("next"));
    assert!(run.ended().await.stderr.contains("sqlock run was killed"));
}

#[tokio::test]
async fn a_killed_guardian_takes_all_that_its_command_started_with_it() {
    let world = World::new().await;
    let (run, pids) = family(&world).await;
    let guardian = children(run.pid());
    assert_eq!(guardian.len(), 1, "{guardian:?}");
    signal::kill(guardian[0]);
    for pid in pids {
        until_dead(pid).await;
    }
    run.ended().await.assert_code(137);
    world.until_free().await;
}

/// Then nobody is left to do the killing, but the kernel.
#[tokio::test]
async fn when_both_are_killed_the_command_dies_with_them() {
    let world = World::new().await;
    let run = world.run(&["k"], "trap '' TERM HUP; echo $$ >command; exec sleep 600");
    let command = world.pid("command").await;
    let guardian = children(run.pid())[0];
    signal::pause(guardian);
    signal::pause(run.pid());
    signal::kill(guardian);
    signal::kill(run.pid());
    until_dead(command).await;
    world.until_free().await;
}

/// The guardian is kept from its work, and meanwhile the server sees no end of the connection.
///
/// A terminal keeps all in one process group, and a session of its own keeps the kernel from waking
/// the guardian when `sqlock run` is gone.
#[tokio::test]
async fn the_lock_is_not_free_before_the_command_is_dead() {
    for backend in ["session", "xact"] {
        let world = World::new().await;
        let (_terminal, its_end) = terminal();
        let mut command = Command::new("setsid");
        command
            .args([env!("CARGO_BIN_EXE_sqlock"), "run"])
            .args(["--backend", backend, "k", "--"])
            .args(["sh", "-c", "echo $$ >command; exec sleep 600"])
            .current_dir(world.path("."))
            .env("DATABASE_URL", world.database.url())
            .stdin(its_end)
            .kill_on_drop(true);
        let run = world.start(command);
        let command = world.pid("command").await;
        let guardian = children(run.pid())[0];
        let paused = Paused::new(guardian);
        signal::kill(run.pid());
        until_dead(run.pid()).await;
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(signal::is_alive(command));
            let other = ["--no-wait", "--backend", backend, "k"];
            world.run(&other, "true").ended().await.assert_code(75);
        }
        drop(paused);
        until_dead(command).await;
        world.run(&["k"], "true").ended().await.assert_code(0);
    }
}

/// A process that goes on when this is dropped, also by a test that fails.
struct Paused(i32);

impl Paused {
    fn new(pid: i32) -> Self {
        signal::pause(pid);
        Self(pid)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        signal::resume(self.0);
    }
}

/// Both ends of a pseudo-terminal that is nobody's controlling terminal.
fn terminal() -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    (ours, theirs)
}

/// The guardian has the connection, and the command nothing.
#[tokio::test]
async fn only_the_guardian_shares_the_connection() {
    for backend in ["session", "xact"] {
        let world = World::new().await;
        let script = "touch started; exec sleep 600";
        let run = world.run(&["--backend", backend, "k"], script);
        world.until("started").await;
        let guardian = children(run.pid())[0];
        let command = children(guardian)[0];
        let of_guardian = sockets(guardian);
        let shared: Vec<_> = of_guardian
            .intersection(&sockets(run.pid()))
            .cloned()
            .collect();
        assert_eq!(shared.len(), 1, "{shared:?}");
        assert!(sockets(command).is_empty());
    }
}

#[tokio::test]
async fn killed_while_it_waits_nothing_is_left() {
    let world = World::new().await;
    let holder = world.run(
        &["k"],
        "touch started; until [ -e go ]; do sleep 0.05; done",
    );
    world.until("started").await;
    let waiter = world.run(&["k"], "touch ran");
    world.until_sessions(2).await;
    signal::kill(waiter.pid());
    world.until_sessions(1).await;
    world.write("go");
    holder.ended().await.assert_code(0);
    world.until_free().await;
    assert!(!world.has("ran"));
}

#[tokio::test]
async fn a_stopped_command_is_killed_too() {
    let world = World::new().await;
    let run = world.run(&["k"], "echo $$ >command; kill -STOP $$; touch went-on");
    let command = world.pid("command").await;
    eventually(PATIENCE, async || {
        fs::read_to_string(format!("/proc/{command}/stat")).is_ok_and(|stat| stat.contains(") T "))
    })
    .await;
    signal::kill(run.pid());
    until_dead(command).await;
    world.until_free().await;
    assert!(!world.has("went-on"));
}

fn sockets(pid: i32) -> HashSet<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let names = links.map(|link| link.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("socket:")).collect()
}
