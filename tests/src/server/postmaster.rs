use std::fs;
use std::path::Path;

use anyhow::Result;

use super::account::Account;
use super::binaries::Binaries;
use super::daemon::{Daemon, Program};
use super::scratch::ServerDirectory;
use crate::keeper::End;

/// Starts PostgreSQL on a data directory, and waits until it takes connections.
pub(super) fn start(
    binaries: &Binaries,
    account: &Account,
    directory: &ServerDirectory,
    port: u16,
) -> Result<Daemon> {
    let data = directory.data();
    let port = port.to_string();
    let program = Program {
        path: &binaries.postgres(),
        arguments: &["-D".as_ref(), data.as_ref(), "-p".as_ref(), port.as_ref()],
        account,
        end: End::Quit,
    };
    Daemon::start(&program, directory, |pid| is_ready(&data, pid))
}

/// The lock file's first line is the pid, and its eighth the state, as `pg_ctl` reads them. A
/// standby that takes connections is ready, too.
fn is_ready(data: &Path, pid: i32) -> bool {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else {
        return false;
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.first() == Some(&pid.to_string().as_str()) && lines.get(7) == Some(&"ready")
}
