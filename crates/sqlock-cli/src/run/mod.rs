//! `sqlock run`: the lock, the command, and the lock again.

mod name;
mod supervise;
mod take;
mod waiting;

use std::time::Duration;

use sqlock::{InspectBackend, Lock, Locks, SessionBackend, session::SessionOptions};
use tokio::time::timeout;

use crate::{
    args::{Backend, Run},
    exit::{Code, Failure},
    program,
    report::say,
    signals::Signals,
    target::Target,
};

/// How long a server has to say good-bye. It frees the lock all the same.
const CLOSING: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: &Run) -> Result<Code, Failure> {
    let Some(program) = args.command.first() else {
        return Err(Failure::new(Code::USAGE, "no command"));
    };
    // before anybody waits for the lock
    program::check(program)?;
    let target = args.target().ok_or_else(|| {
        let what = "no server: name one by --url, or in the variable DATABASE_URL";
        Failure::new(Code::USAGE, what)
    })?;
    let mut signals =
        Signals::new().map_err(|error| Failure::system("cannot handle signals", error))?;
    match args.backend {
        Backend::Session => {
            let backend = tokio::select! {
                biased;
                signal = signals.recv() => return Ok(Code::of_named_signal(signal)),
                backend = session(args, target) => backend?,
            };
            let locks = Locks::new(backend);
            let lock = locks.lock(&args.key);
            let lock = if args.shared { lock.shared() } else { lock };
            under(args, &locks, lock, &mut signals).await
        }
    }
}

async fn session(args: &Run, target: &Target) -> Result<SessionBackend, Failure> {
    SessionOptions::new()
        .application_name(name::of_holder(&args.key))
        .connect(target.reveal())
        .await
        .map_err(|error| Failure::of(format!("cannot use {target}"), error))
}

/// Takes the lock, runs the command and releases the lock, with any backend.
async fn under<B: InspectBackend>(
    args: &Run,
    locks: &Locks<B>,
    lock: Lock<B>,
    signals: &mut Signals,
) -> Result<Code, Failure> {
    let taken = tokio::select! {
        biased;
        signal = signals.recv() => Ok(Err(Code::of_named_signal(signal))),
        taken = take::take(args, locks, lock) => taken.map(Ok),
    };
    let result = match taken {
        Err(failure) => Err(failure),
        Ok(Err(ended)) => Ok(ended),
        Ok(Ok(None)) => Ok(Code(args.conflict_exit_code)),
        Ok(Ok(Some(guard))) => supervise::supervise(args, guard, signals).await,
    };
    match timeout(CLOSING, locks.shutdown()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "not shut down in order"),
        Err(_) => say("the server does not answer; it frees the lock when it notices"),
    }
    result
}
