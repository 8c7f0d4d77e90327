//! The guardian's side.

use std::{
    ffi::OsString,
    io::{self, ErrorKind},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net,
    },
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitStatus, getpgrp, getpid, kill_process, kill_process_group};
use tokio::{
    net::UnixStream,
    signal::unix::{self, SignalKind},
    time::Instant,
};

use super::{
    channel::{Order, receive_luggage},
    this_program, tree,
};
use crate::{
    exit::{Code, Failure},
    report::say,
    signals::Signals,
};

/// How long a signal to the whole process group may take to reach all of it.
const SPREAD: Duration = Duration::from_millis(50);
/// A signal of our own that is older is another one.
const SAME: Duration = Duration::from_secs(1);

/// Runs the command for the `sqlock run` at the other end of standard input, and ends with it.
pub(crate) async fn guard(command: &[OsString]) -> Result<Code, Failure> {
    let failed = |error| Failure::system("cannot guard the command", error);
    tree::adopt_orphans().map_err(|error| failed(error.into()))?;
    let signals = Signals::new().map_err(failed)?;
    let children = unix::signal(SignalKind::child()).map_err(failed)?;
    let channel = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let Some(luggage) = receive_luggage(&channel).map_err(failed)? else {
        return Ok(Code::of_named_signal(Signal::KILL));
    };
    let channel = asynchronous(channel).map_err(failed)?;
    let command = start(command, luggage.stdin).map_err(failed)?;
    let code = Guard {
        command,
        code: None,
        lock: Lock::Held,
        signals,
        children,
        channel,
        received: Vec::new(),
    }
    .watch()
    .await;
    // until here the server sees the lock's connection open
    drop(luggage.connections);
    Ok(code)
}

fn asynchronous(channel: OwnedFd) -> io::Result<UnixStream> {
    let channel = net::UnixStream::from(channel);
    channel.set_nonblocking(true)?;
    UnixStream::from_std(channel)
}

/// On the main thread, so that the command gets its parent-death signal when the process dies.
fn start(command: &[OsString], stdin: OwnedFd) -> io::Result<Pid> {
    let child = this_program()?
        .arg("program")
        .arg(format!("--parent={}", getpid()))
        .arg("--")
        .args(command)
        .stdin(Stdio::from(stdin))
        .spawn()?;
    // never waited for through `child`: the guardian reaps whatever it is given
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| ErrorKind::InvalidData.into())
}

struct Guard {
    command: Pid,
    /// The command's exit code, once it has ended and its number may be another's.
    code: Option<Code>,
    lock: Lock,
    signals: Signals,
    children: unix::Signal,
    channel: UnixStream,
    /// Signals that came to the guardian itself.
    received: Vec<(Signal, Instant)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    Held,
    Lost,
}

impl Guard {
    async fn watch(mut self) -> Code {
        loop {
            tokio::select! {
                biased;
                _ = self.children.recv() => {
                    if let Some(code) = self.ended() {
                        return code;
                    }
                }
                signal = self.signals.recv() => self.note(signal),
                order = next_order(&self.channel) => match order {
                    Some(Order::Forward(signal)) => self.forward(signal).await,
                    Some(Order::Stop) => {
                        self.stop();
                        if let Some(code) = self.ended() {
                            return code;
                        }
                    }
                    Some(Order::Kill) => return self.kill().await,
                    None => {
                        say("sqlock run was killed; so is its command");
                        return self.kill().await;
                    }
                }
            }
        }
    }

    /// The code to end with, where it is time. Without the lock nothing may run on; with it, what
    /// the command left in the background may.
    fn ended(&mut self) -> Option<Code> {
        while let Some((pid, status)) = tree::reap() {
            if pid == self.command {
                self.code = Some(code(status));
            }
        }
        self.code
            .filter(|_| self.lock == Lock::Held || tree::descendants().is_empty())
    }

    fn note(&mut self, signal: Signal) {
        self.received.retain(|(other, _)| *other != signal);
        self.received.push((signal, Instant::now()));
    }

    /// Passes a signal on, unless it was sent to the whole process group, as by Ctrl-C: then the
    /// command has it already.
    async fn forward(&mut self, signal: Signal) {
        let spread = Instant::now() + SPREAD;
        while let Ok(other) = tokio::time::timeout_at(spread, self.signals.recv()).await {
            self.note(other);
        }
        let came_here = |(other, at): &(Signal, Instant)| *other == signal && at.elapsed() < SAME;
        if self.code.is_some() || self.received.iter().any(came_here) {
            return;
        }
        let below = tree::descendants();
        let command = below.iter().find(|process| process.pid == self.command);
        match command.map(|command| command.group) {
            Some(group) => {
                let members = below.into_iter().filter(|process| process.group == group);
                tree::signal_all(members, signal);
            }
            None => self.signal_what_is_known(signal),
        }
    }

    fn stop(&mut self) {
        self.lock = Lock::Lost;
        let below = tree::descendants();
        if below.is_empty() {
            return self.signal_what_is_known(Signal::TERM);
        }
        tree::signal_all(below.iter().copied(), Signal::TERM);
        // one that is stopped could not heed it
        tree::signal_all(below, Signal::CONT);
    }

    /// Where the system does not tell who descends from us: our own group, if we lead one, or the
    /// command.
    fn signal_what_is_known(&self, signal: Signal) {
        if getpgrp() == getpid() {
            kill_process_group(getpgrp(), signal).ok();
        } else if self.code.is_none() {
            kill_process(self.command, signal).ok();
        }
    }

    async fn kill(self) -> Code {
        if !cfg!(target_os = "linux") {
            // where the guardian leads a group, it dies with it
            self.signal_what_is_known(Signal::KILL);
        }
        tree::kill_all().await;
        self.code
            .unwrap_or_else(|| Code::of_named_signal(Signal::KILL))
    }
}

/// `None` where `sqlock run` is gone. Cancel safe.
async fn next_order(channel: &UnixStream) -> Option<Order> {
    loop {
        let mut byte = [0];
        channel.readable().await.ok()?;
        match channel.try_read(&mut byte) {
            Ok(0) => return None,
            Ok(_) => match Order::from_byte(byte[0]) {
                Some(order) => return Some(order),
                None => continue,
            },
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

fn code(status: WaitStatus) -> Code {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => Code(u8::try_from(status).unwrap_or(u8::MAX)),
        (_, Some(signal)) => Code::of_signal(signal),
        _ => Code::SYSTEM,
    }
}
