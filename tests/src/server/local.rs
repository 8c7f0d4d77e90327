use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU16, Ordering},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use super::Stop;
use super::account::Account;
use super::binaries::Binaries;
use super::cluster;
use super::daemon::Daemon;
use super::port::on_free_port;
use super::postmaster;
use super::scratch::ServerDirectory;

/// A server of the local binaries, with its directory and port, running or not.
#[derive(Debug)]
pub(super) struct Local {
    binaries: Binaries,
    account: Account,
    port: AtomicU16,
    // Before the directory: the server ends before its directory goes.
    running: Mutex<Option<Daemon>>,
    directory: ServerDirectory,
}

impl Local {
    pub(super) fn start(binaries: Binaries, settings: &[(String, String)]) -> Result<Self> {
        let account = Account::for_server()?;
        let directory = cluster::create(&binaries, &account, settings)?;
        Self::run(binaries, account, directory)
    }

    /// A streaming standby of this server.
    pub(super) fn start_standby(&self) -> Result<Self> {
        let (binaries, account) = (self.binaries.clone(), self.account.clone());
        let directory = cluster::copy(&binaries, &account, self.port())?;
        Self::run(binaries, account, directory)
    }

    fn run(binaries: Binaries, account: Account, directory: ServerDirectory) -> Result<Self> {
        let (port, postmaster) =
            on_free_port(|port| postmaster::start(&binaries, &account, &directory, port))?;
        Ok(Self {
            binaries,
            account,
            port: AtomicU16::new(port),
            running: Mutex::new(Some(postmaster)),
            directory,
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    pub(super) fn start_again(&self) -> Result<()> {
        let mut running = self.running();
        if running.is_some() {
            bail!("the server runs already");
        }
        *running = Some(postmaster::start(
            &self.binaries,
            &self.account,
            &self.directory,
            self.port(),
        )?);
        Ok(())
    }

    pub(super) fn start_elsewhere(&self) -> Result<()> {
        let mut running = self.running();
        if running.is_some() {
            bail!("the server runs already");
        }
        let (port, postmaster) = on_free_port(|port| {
            postmaster::start(&self.binaries, &self.account, &self.directory, port)
        })?;
        self.port.store(port, Ordering::Relaxed);
        *running = Some(postmaster);
        Ok(())
    }

    pub(super) fn stop(&self, stop: Stop) -> Result<()> {
        let signal = match stop {
            Stop::Fast => Signal::INT,
            Stop::Immediate => Signal::QUIT,
        };
        self.running()
            .take()
            .context("the server does not run")?
            .stop(signal)
    }

    pub(super) fn kill(&self) -> Result<()> {
        self.running()
            .take()
            .context("the server does not run")?
            .kill()
    }

    /// The postmaster first; empty where the server does not run.
    pub(super) fn processes(&self) -> Vec<i32> {
        self.running()
            .as_ref()
            .map(Daemon::processes)
            .unwrap_or_default()
    }

    fn running(&self) -> MutexGuard<'_, Option<Daemon>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
