use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::process::Signal;

use super::account::Account;
use super::binaries::Binaries;
use super::scratch::ServerDirectory;
use crate::{keeper, signal};

const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// A running server of the local binaries. Stopped when dropped, by force if need be.
#[derive(Debug)]
pub(super) struct Postmaster {
    child: Child,
    data: PathBuf,
}

impl Postmaster {
    /// Starts a server and waits until it takes connections.
    pub(super) fn start(
        binaries: &Binaries,
        account: &Account,
        directory: &ServerDirectory,
        port: u16,
    ) -> Result<Self> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.log())?;
        let mut command = keeper::dying_with_this_process(&binaries.postgres());
        command
            .arg("-D")
            .arg(directory.data())
            .args(["-p", &port.to_string()])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // A signal to the test's own group, from a terminal or a test, is not the server's.
            .process_group(0);
        account.apply(&mut command);
        let child = keeper::spawn(command).context("cannot run postgres")?;
        let mut postmaster = Self {
            child,
            data: directory.data(),
        };
        postmaster.wait_until_ready(&directory.log())?;
        Ok(postmaster)
    }

    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    /// The postmaster first, then its children.
    pub(super) fn processes(&self) -> Vec<i32> {
        let mut pids = signal::processes_in(&self.data);
        pids.sort_by_key(|pid| *pid != self.pid());
        pids
    }

    /// Ends the server by a signal to the postmaster, and waits for it.
    pub(super) fn stop(mut self, signal: Signal) -> Result<()> {
        signal::send_all(&[self.pid()], signal);
        self.wait_until_gone(END)
    }

    /// Kills every process of the server with `kill -9`, and waits until none is left.
    pub(super) fn kill(&mut self) -> Result<()> {
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

    fn wait_until_ready(&mut self, log: &Path) -> Result<()> {
        let deadline = Instant::now() + START;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("postgres ended with {status} while starting: {}", tail(log));
            }
            if self.is_ready() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!("postgres is not ready after {START:?}: {}", tail(log));
            }
            pause();
        }
    }

    /// The lock file's first line is the pid, and its eighth the state, as `pg_ctl` reads them.
    fn is_ready(&self) -> bool {
        let Ok(text) = fs::read_to_string(self.data.join("postmaster.pid")) else {
            return false;
        };
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.first() == Some(&self.pid().to_string().as_str()) && lines.get(7) == Some(&"ready")
    }
}

impl Drop for Postmaster {
    /// An immediate shutdown where it obeys, since `kill -9` leaves shared memory behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        signal::send_all(&[self.pid()], Signal::QUIT);
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
