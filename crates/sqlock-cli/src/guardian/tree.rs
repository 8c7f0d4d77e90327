//! The processes that descend from this one.

use std::time::Duration;

use rustix::{
    io::{self, Errno},
    process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait},
};

/// The pauses between two looks at processes that are dying.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// A process that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    parent: i32,
    pub(super) group: i32,
}

/// Makes this process the parent of what its descendants leave behind.
pub(super) fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// Everything below this process. Where the system does not tell, nothing.
pub(super) fn descendants() -> Vec<Process> {
    let mut others = all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        let children = others.extract_if(.., |process| process.parent == parent);
        for child in children {
            parents.push(child.pid.as_raw_nonzero().get());
            found.push(child);
        }
    }
    found
}

/// Sends `signal` to all of them. One that ended meanwhile, or that is another user's, is passed
/// over.
pub(super) fn signal_all(processes: impl IntoIterator<Item = Process>, signal: Signal) {
    for process in processes {
        kill_process(process.pid, signal).ok();
    }
}

/// Kills everything below this process, and returns when it has ended. What cannot be killed is
/// waited for: as long as it is there, the lock must be.
pub(super) async fn kill_all() {
    let mut pause = FIRST_PAUSE;
    loop {
        let left = descendants();
        signal_all(left.iter().copied(), Signal::KILL);
        while reap().is_some() {}
        if left.is_empty() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// One child that has ended; `None` where there is none at this moment.
pub(super) fn reap() -> Option<(Pid, WaitStatus)> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::INTR) => {}
            other => return other.ok().flatten(),
        }
    }
}

fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse(pid, &String::from_utf8_lossy(&stat))
    })
    .collect()
}

/// `4711 (name) S 4710 4711 …`, where the name can be anything.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let process = Process {
        pid: Pid::from_raw(pid)?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    };
    (!has_ended).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let process = parse(42, "42 (a) S) 1 (b) S 7 40 39 0 -1").unwrap();
        assert_eq!((process.parent, process.group), (7, 40));
        assert_eq!(parse(42, "42 (sh) Z 7 40 39"), None);
        assert_eq!(parse(42, "42 (sh"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn grandchildren_are_found() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 100 & echo ready; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(&mut shell.stdout.take().unwrap(), &mut ready).unwrap();
        let found = descendants();
        let pid = i32::try_from(shell.id()).unwrap();
        let grandchild = found.iter().find(|process| process.parent == pid);
        signal_all(grandchild.copied(), Signal::KILL);
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert!(grandchild.is_some(), "{found:?}");
    }
}
