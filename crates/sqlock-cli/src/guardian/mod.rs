//! A command that does not outlive the lock.
//!
//! Between `sqlock run` and the command stands a guardian, `sqlock __exec guard`. The two share a
//! channel, a pair of sockets. When `sqlock run` ends in whatever way, also by SIGKILL, the kernel
//! closes its end, and the guardian kills the command with all that descends from it. Until then it
//! passes on signals, and at last the command's exit code.
//!
//! - The guardian is a *subreaper*: what the command's processes leave behind becomes its child
//!   instead of escaping, so that the whole tree can be found, however it is grouped.
//! - The guardian holds duplicates of the sockets of `sqlock run`, and the lock's connection is
//!   among them: the server does not see it closed before the last process of the command is gone.
//! - The command itself is started by `sqlock __exec program`, which asks for SIGKILL on the
//!   guardian's death, checks that the guardian still lives, and becomes the command. It is hard to
//!   kill the guardian and miss the command.
//! - Away from a terminal the guardian leads a process group of its own, so that a signal to the
//!   group of `sqlock run` does not end the guardian with it. At a terminal all stay in one group:
//!   job control, Ctrl-C and reading from the terminal work as without `sqlock`.
//!
//! All of this is so on Linux. Other systems know no subreapers and no parent-death signals: there
//! the guardian kills the command's process group, or the command alone where the group is that of
//! a terminal, and the lock is free as soon as `sqlock run` is gone.

mod channel;
mod guard;
mod program;
mod supervised;
mod tree;

pub(crate) use guard::guard;
pub(crate) use program::become_program;
pub(crate) use supervised::Supervised;

use std::{path::PathBuf, process::Command};

use std::os::unix::process::CommandExt as _;

/// This program again, also where its file was replaced or removed meanwhile.
fn this_program() -> std::io::Result<Command> {
    let program = if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe()?
    };
    let mut command = Command::new(program);
    command.arg0("sqlock").arg("__exec");
    Ok(command)
}
