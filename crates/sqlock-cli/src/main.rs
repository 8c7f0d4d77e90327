//! The command `sqlock`: runs any program under a distributed lock.

#[cfg(not(unix))]
compile_error!("the command `sqlock` needs processes and signals as Unix has them");

mod args;
mod doctor;
mod exit;
mod guardian;
mod log;
mod program;
mod report;
mod run;
mod scrub;
mod signals;
mod target;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Verb};
use exit::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report::usage(&error),
    };
    match verb(cli) {
        Ok(code) => code.into(),
        Err(failure) => report::failure(&failure),
    }
}

fn verb(cli: Cli) -> Result<exit::Code, Failure> {
    match cli.verb {
        Verb::Run(args) => {
            log::start(cli.verbose);
            on_this_thread(run::run(&args))
        }
        Verb::Doctor(args) => {
            log::start(cli.verbose);
            on_this_thread(doctor::doctor(&args))
        }
        Verb::Exec(hop) => match hop {
            args::Exec::Guard { command } => on_this_thread(guardian::guard(&command)),
            args::Exec::Program { parent, command } => guardian::become_program(parent, &command),
        },
    }
}

/// On the main thread, which lives as long as the process: the kernel ties a parent-death signal
/// to the thread that started the child.
fn on_this_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("cannot start", error))?;
    let result = runtime.block_on(work);
    // a look-up of a name may be under way, and nobody waits for it any more
    runtime.shutdown_background();
    result
}
