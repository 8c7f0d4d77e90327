//! The side of `sqlock run`.

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _, process::ExitStatusExt as _},
    },
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::{
    channel::{Order, send_luggage},
    this_program, tree,
};
use crate::exit::{Code, Failure};

/// A command that runs under a guardian. Dropped, it is killed with all that it started.
#[derive(Debug)]
pub(crate) struct Supervised {
    guardian: Child,
    channel: UnixStream,
}

/// What the command finds in its environment; `None` is what it must not find.
pub(crate) type Variables<'a> = [(&'a str, Option<String>)];

impl Supervised {
    pub(crate) fn start(command: &[OsString], variables: &Variables<'_>) -> Result<Self, Failure> {
        Self::spawn(command, variables)
            .map_err(|error| Failure::system("cannot start the command", error))
    }

    fn spawn(command: &[OsString], variables: &Variables<'_>) -> io::Result<Self> {
        // for what a guardian leaves behind that was killed itself
        tree::adopt_orphans()?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut guardian = this_program()?;
        guardian
            .args(["guard", "--"])
            .args(command)
            .stdin(OwnedFd::from(theirs));
        for (name, value) in variables {
            match value {
                Some(value) => guardian.env(name, value),
                None => guardian.env_remove(name),
            };
        }
        if !is_at_terminal() {
            guardian.process_group(0);
        }
        let guardian = Command::from(guardian).spawn()?;
        send_luggage(&ours)?;
        Ok(Self {
            guardian,
            channel: ours,
        })
    }

    /// Passes a signal on to the command.
    pub(crate) fn forward(&self, signal: Signal) {
        self.order(Order::Forward(signal));
    }

    /// Asks every process of the command to end.
    pub(crate) fn stop(&self) {
        self.order(Order::Stop);
    }

    /// Ends every process of the command.
    pub(crate) fn kill(&self) {
        self.order(Order::Kill);
    }

    /// The command's exit code, when it has ended. Cancel safe.
    pub(crate) async fn wait(&mut self) -> Result<Code, Failure> {
        let status = self.guardian.wait().await;
        let status = status.map_err(|error| Failure::system("cannot wait for it", error))?;
        if let Some(signal) = status.signal() {
            // the guardian was killed: do its work
            tree::kill_all().await;
            return Ok(Code::of_signal(signal));
        }
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(Code::SYSTEM, Code))
    }

    /// Where the guardian has ended, [`Self::wait`] tells.
    fn order(&self, order: Order) {
        (&self.channel).write_all(&[order.to_byte()]).ok();
        if order == Order::Stop || order == Order::Kill {
            let pid = self.guardian.id().and_then(|pid| i32::try_from(pid).ok());
            if let Some(pid) = pid.and_then(Pid::from_raw) {
                kill_process(pid, Signal::CONT).ok();
            }
        }
    }
}

/// Where it is, process groups are the shell's business.
fn is_at_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}
