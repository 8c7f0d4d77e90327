use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};

use super::config::{Config, KNOWS_PREPARED_STATEMENTS, SECTION, STOCK_PREPARED_STATEMENTS};
use crate::keeper::End;
use crate::server::account::Account;
use crate::server::daemon::{Daemon, Program};
use crate::server::port::on_free_port;
use crate::server::scratch::{Scratch, ServerDirectory};

const INI: &str = "pgbouncer.ini";
const USERS: &str = "users";

/// A PgBouncer of the local binary, with its directory and port, running or not.
#[derive(Debug)]
pub(super) struct Local {
    binary: PathBuf,
    account: Account,
    port: u16,
    // Before the directory: it ends before its directory goes.
    running: Mutex<Option<Daemon>>,
    directory: ServerDirectory,
}

impl Local {
    pub(super) fn start(binary: PathBuf, config: &Config) -> Result<Self> {
        let account = Account::for_server()?;
        let scratch = Scratch::lock()?;
        scratch.sweep()?;
        let directory = scratch.server_directory()?;
        drop(scratch);
        fs::create_dir(directory.data())?;
        account.give(&directory.data())?;
        fs::write(directory.data().join(USERS), config.users())?;
        let stock = stock_settings(&binary)?;
        let (port, daemon) = on_free_port(|port| {
            let text = config.text(port, USERS);
            let text = text.replacen(SECTION, &format!("{SECTION}\n{stock}"), 1);
            fs::write(directory.data().join(INI), text)?;
            run(&binary, &account, &directory)
        })?;
        Ok(Self {
            binary,
            account,
            port,
            running: Mutex::new(Some(daemon)),
            directory,
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn start_again(&self) -> Result<()> {
        let mut running = self.running();
        if running.is_some() {
            bail!("pgbouncer runs already");
        }
        *running = Some(run(&self.binary, &self.account, &self.directory)?);
        Ok(())
    }

    pub(super) fn stop(&self) -> Result<()> {
        let running = self.running().take();
        running.context("pgbouncer does not run")?.kill()
    }

    pub(super) fn pid(&self) -> Option<i32> {
        self.running().as_ref().map(Daemon::pid)
    }

    fn running(&self) -> MutexGuard<'_, Option<Daemon>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(binary: &Path, account: &Account, directory: &ServerDirectory) -> Result<Daemon> {
    let program = Program {
        path: binary,
        arguments: &[INI.as_ref()],
        account,
        end: End::Kill,
    };
    let log = directory.log();
    Daemon::start(&program, directory, |pid| {
        // It says so once it listens. A look at the port could find somebody else's server.
        let text = fs::read_to_string(&log).unwrap_or_default();
        text.contains(&format!("[{pid}] LOG process up"))
    })
}

fn stock_settings(binary: &Path) -> Result<&'static str> {
    let output = Command::new(binary)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {}", binary.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let minor = text
        .lines()
        .find_map(|line| line.strip_prefix("PgBouncer 1."))
        .and_then(|version| version.split('.').next()?.trim().parse::<u32>().ok())
        .with_context(|| format!("pgbouncer is of no version that is known: {text}"))?;
    Ok(if minor >= KNOWS_PREPARED_STATEMENTS {
        STOCK_PREPARED_STATEMENTS
    } else {
        ""
    })
}
