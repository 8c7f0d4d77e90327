//! The last hop: what becomes the command.

use std::{ffi::OsString, os::unix::process::CommandExt as _, process::Command};

use rustix::process::{Signal, getpid, getppid, kill_process};

use crate::exit::{Code, Failure};
use crate::program::refused;

/// Becomes the command, to be killed when `parent`, the guardian, dies.
///
/// The kernel forgets that where the command runs with the rights of another user.
pub(crate) fn become_program(parent: i32, command: &[OsString]) -> Result<Code, Failure> {
    die_with_parent()?;
    // it may have died before the kernel was told
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent) {
        kill_process(getpid(), Signal::KILL).ok();
    }
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::new(Code::USAGE, "no command"));
    };
    let error = Command::new(program).args(arguments).exec();
    Err(refused(program, error))
}

fn die_with_parent() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::system("cannot tie the command to sqlock", error))?;
    Ok(())
}
