use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::process::Signal;

use super::account::Account;
use super::scratch::ServerDirectory;
use crate::keeper::{self, End};
use crate::signal;

const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// A running server of local binaries, whose processes all work in its data directory. Stopped when
/// dropped, by force if need be.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    data: PathBuf,
    end: End,
}

/// What a [`Daemon`] runs.
pub(crate) struct Program<'a> {
    pub(crate) path: &'a Path,
    pub(crate) arguments: &'a [&'a OsStr],
    pub(crate) account: &'a Account,
    pub(crate) end: End,
}

impl Daemon {
    /// Starts a server, and waits until it is ready, which is told by its pid.
    pub(crate) fn start(
        program: &Program<'_>,
        directory: &ServerDirectory,
        is_ready: impl Fn(i32) -> bool,
    ) -> Result<Self> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.log())?;
        let name = program.path.file_name().unwrap_or_default().display();
        let name = name.to_string();
        let mut command = keeper::dying_with_this_process(program.path, program.end);
        command
            .args(program.arguments)
            // By it the next test process finds what a killed one has left.
            .current_dir(directory.data())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // A signal to the test's own group, from a terminal or a test, is not the server's.
            .process_group(0);
        program.account.apply(&mut command);
        let child = keeper::spawn(command).with_context(|| format!("cannot run {name}"))?;
        let mut daemon = Self {
            child,
            data: directory.data(),
            end: program.end,
        };
        daemon.wait_until_ready(&name, &directory.log(), is_ready)?;
        Ok(daemon)
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    /// The one that was started first, then its children.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut pids = signal::processes_in(&self.data);
        pids.sort_by_key(|pid| *pid != self.pid());
        pids
    }

    /// Ends the server by a signal to its first process, and waits for it.
    pub(crate) fn stop(mut self, signal: Signal) -> Result<()> {
        signal::send_all(&[self.pid()], signal);
        self.wait_until_gone(END)
    }

    /// Kills every process of the server with `kill -9`, and waits until none is left.
    pub(crate) fn kill(&mut self) -> Result<()> {
        signal::kill_all_in(&self.data, END)
            .map_err(|pids| anyhow!("processes {pids:?} outlived kill -9 by {END:?}"))?;
        self.child.wait()?;
        Ok(())
    }

    fn wait_until_gone(&mut self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        while self.child.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                bail!("the server did not stop within {limit:?}");
            }
            pause();
        }
        Ok(())
    }

    fn wait_until_ready(
        &mut self,
        name: &str,
        log: &Path,
        is_ready: impl Fn(i32) -> bool,
    ) -> Result<()> {
        let deadline = Instant::now() + START;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{name} ended with {status} while starting: {}", tail(log));
            }
            if is_ready(self.pid()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!("{name} is not ready after {START:?}: {}", tail(log));
            }
            pause();
        }
    }
}

impl Drop for Daemon {
    /// By force only where it does not obey: `kill -9` leaves PostgreSQL's shared memory behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        signal::send_all(&[self.pid()], self.end.signal());
        signal::send_all(&self.processes(), Signal::CONT);
        if self.wait_until_gone(GRACE).is_err() {
            let _ = self.kill();
        }
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

#[allow(
    clippy::disallowed_methods,
    reason = "called on threads that may block"
)]
fn pause() {
    thread::sleep(POLL);
}
