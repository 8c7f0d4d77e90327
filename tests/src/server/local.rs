use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use super::Stop;
use super::account::Account;
use super::binaries::Binaries;
use super::cluster;
use super::port::free_port;
use super::postmaster::Postmaster;
use super::scratch::ServerDirectory;

const PORTS_TO_TRY: usize = 5;

/// A server of the local binaries, with its directory and port, running or not.
#[derive(Debug)]
pub(super) struct Local {
    binaries: Binaries,
    account: Account,
    port: u16,
    // Before the directory: the server ends before its directory goes.
    running: Mutex<Option<Postmaster>>,
    directory: ServerDirectory,
}

impl Local {
    pub(super) fn start(binaries: Binaries, settings: &[(String, String)]) -> Result<Self> {
        let account = Account::for_server()?;
        let directory = cluster::create(&binaries, &account, settings)?;
        let (port, postmaster) = start_on_free_port(&binaries, &account, &directory)?;
        Ok(Self {
            binaries,
            account,
            port,
            running: Mutex::new(Some(postmaster)),
            directory,
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn start_again(&self) -> Result<()> {
        let mut running = self.running();
        if running.is_some() {
            bail!("the server runs already");
        }
        *running = Some(Postmaster::start(
            &self.binaries,
            &self.account,
            &self.directory,
            self.port,
        )?);
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
            .map(Postmaster::processes)
            .unwrap_or_default()
    }

    fn running(&self) -> MutexGuard<'_, Option<Postmaster>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A port can be taken by another between the look and the start.
fn start_on_free_port(
    binaries: &Binaries,
    account: &Account,
    directory: &ServerDirectory,
) -> Result<(u16, Postmaster)> {
    let mut outcome = Err(anyhow::anyhow!("no port was tried"));
    for _ in 0..PORTS_TO_TRY {
        let port = free_port()?;
        outcome = Postmaster::start(binaries, account, directory, port)
            .map(|postmaster| (port, postmaster));
        match &outcome {
            Err(error) if format!("{error:#}").contains("Address already in use") => {}
            _ => break,
        }
    }
    outcome
}
