//! Signals to processes, by pid.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Pauses a process (SIGSTOP); panics where there is none.
pub fn pause(pid: i32) {
    must_send(pid, Signal::STOP);
}

/// Lets a paused process go on (SIGCONT); panics where there is none.
pub fn resume(pid: i32) {
    must_send(pid, Signal::CONT);
}

/// Kills a process with `kill -9`; panics where there is none.
pub fn kill(pid: i32) {
    must_send(pid, Signal::KILL);
}

/// Asks a process to end (SIGTERM); panics where there is none.
pub fn terminate(pid: i32) {
    must_send(pid, Signal::TERM);
}

/// Whether there is a process of this pid; a zombie that nobody has waited for does not count.
#[must_use]
pub fn is_alive(pid: i32) -> bool {
    let exists = Pid::from_raw(pid)
        .is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
    exists && !is_zombie(pid)
}

/// To each process that is still there.
pub(crate) fn send_all(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // It may have ended since it was listed.
        let _ = kill_process(pid, signal);
    }
}

/// Kills every process that works in `directory`, and waits until the last is gone, for at most
/// `limit`; says which are not.
#[allow(
    clippy::disallowed_methods,
    reason = "called on threads that may block"
)]
pub(crate) fn kill_all_in(directory: &Path, limit: Duration) -> Result<(), Vec<i32>> {
    let deadline = Instant::now() + limit;
    let mut dying = Vec::new();
    loop {
        let pids = processes_in(directory);
        send_all(&pids, Signal::KILL);
        // A process on its way out has no directory any more, and may hold its sockets yet.
        dying.extend(pids);
        dying.retain(|pid| is_alive(*pid));
        if dying.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(dying);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn must_send(pid: i32, signal: Signal) {
    let sent = Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, signal).is_ok());
    assert!(sent, "no process {pid} to send a signal to");
}

/// Every process that works in `directory`: as every process of a PostgreSQL server does in its
/// data directory, also where the postmaster is dead already.
pub(crate) fn processes_in(directory: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory))
        .filter(|pid| !is_zombie(*pid))
        .collect()
}

fn is_zombie(pid: i32) -> bool {
    // The state follows the command's name, which is in parentheses and may hold any character.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| {
            stat.rsplit_once(") ")
                .map(|(_, rest)| rest.starts_with('Z'))
        })
        .unwrap_or(false)
}
