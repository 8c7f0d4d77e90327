//! `sqlock run`: the lock, the command, and the lock again.

mod auto;
mod choice;
mod name;
mod supervise;
mod take;
mod waiting;
mod watch;

use std::time::Duration;

use sqlock::{InspectBackend, Lock, Locks, SharedBackend, session::Preflight};
use tokio::time::timeout;

use crate::{
    args::Run,
    exit::{Code, Failure},
    program,
    report::say,
    signals::Signals,
    target::Target,
};
use choice::{Advisory, Choice};
use watch::Watch;

/// How long a server has to say good-bye. It frees the lock all the same.
const CLOSING: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: &Run) -> Result<Code, Failure> {
    let Some(program) = args.command.first() else {
        return Err(Failure::new(Code::USAGE, "no command"));
    };
    // before anybody waits for the lock
    program::check(program)?;
    let choice = Choice::of(args)?;
    let mut signals =
        Signals::new().map_err(|error| Failure::system("cannot handle signals", error))?;
    match choice {
        Choice::Advisory(target, kind) => advisory(args, target, kind, &mut signals).await,
        Choice::Ttl(target) => {
            let opening = choice::leases_on_server(args, target);
            let backend = match unless_told(&mut signals, opening).await {
                Ok(backend) => backend?,
                Err(code) => return Ok(code),
            };
            let (locks, lock) = choice::lease(args, backend);
            under(args, &locks, lock, &mut signals).await
        }
        Choice::Sqlite(file) => {
            let opening = choice::leases_in_file(args, &file);
            let backend = match unless_told(&mut signals, opening).await {
                Ok(backend) => backend?,
                Err(code) => return Ok(code),
            };
            let (locks, lock) = choice::lease(args, backend);
            under(args, &locks, lock, &mut signals).await
        }
    }
}

async fn advisory(
    args: &Run,
    target: &Target,
    kind: Option<Advisory>,
    signals: &mut Signals,
) -> Result<Code, Failure> {
    let (kind, preflight) = match kind {
        Some(kind) => (kind, Preflight::Check),
        None => match unless_told(signals, auto::pick(target)).await {
            Ok(kind) => (kind?, Preflight::Skip),
            Err(code) => return Ok(code),
        },
    };
    match kind {
        Advisory::Session => {
            let opening = choice::session(args, target, preflight);
            let backend = match unless_told(signals, opening).await {
                Ok(backend) => backend?,
                Err(code) => return Ok(code),
            };
            let locks = Locks::new(backend);
            under(args, &locks, lock(args, &locks), signals).await
        }
        Advisory::Xact => {
            let pool = choice::pool(args, target)?;
            let opening = choice::transactions(args, target, preflight);
            let options = match unless_told(signals, opening).await {
                Ok(options) => options?,
                Err(code) => return Ok(code),
            };
            let locks = Locks::new(options.with_pool(pool.clone()));
            let result = under(args, &locks, lock(args, &locks), signals).await;
            if timeout(CLOSING, pool.close()).await.is_err() {
                tracing::debug!("the connection was not closed in order");
            }
            result
        }
    }
}

fn lock<B: SharedBackend>(args: &Run, locks: &Locks<B>) -> Lock<B> {
    let lock = locks.lock(&args.key);
    if args.shared { lock.shared() } else { lock }
}

/// What `work` gives, or the code to exit with where a signal comes first.
async fn unless_told<T>(signals: &mut Signals, work: impl Future<Output = T>) -> Result<T, Code> {
    tokio::select! {
        biased;
        signal = signals.recv() => Err(Code::of_named_signal(signal)),
        output = work => Ok(output),
    }
}

/// Takes the lock, runs the command and releases the lock, with any backend.
async fn under<B: InspectBackend<Held: Watch>>(
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
