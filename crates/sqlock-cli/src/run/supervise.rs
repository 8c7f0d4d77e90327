//! The command, while the lock is held.

use std::{future::pending, pin::Pin, pin::pin, time::Duration};

use sqlock::{Error, Held, LockGuard};
use tokio::time::{Sleep, sleep, timeout};

use super::watch::Watch;
use crate::{
    args::Run,
    exit::{Code, Failure},
    guardian::Supervised,
    report::{chain, say},
    signals::Signals,
};

/// How long a release may take. The end of the connection is one too.
const RELEASE: Duration = Duration::from_secs(10);

/// Runs the command, and releases the lock when it has ended.
pub(super) async fn supervise<H: Watch>(
    args: &Run,
    mut guard: LockGuard<H>,
    signals: &mut Signals,
) -> Result<Code, Failure> {
    let variables = [
        ("SQLOCK_KEY", Some(guard.key().to_string())),
        // not that of another lock around this one
        ("SQLOCK_TOKEN", guard.token().map(|token| token.to_string())),
    ];
    let command = Supervised::start(&args.command, &variables)?;
    let (code, time) = follow(args, command, guard.held_mut(), signals).await?;
    match time {
        Time::NotLimited => Ok(release(guard, args, code).await),
        Time::Left(_) | Time::Up => Ok(Code(args.lost_exit_code)),
    }
}

/// Until the command has ended: with which code, and what time it had left.
async fn follow<H: Watch>(
    args: &Run,
    mut command: Supervised,
    held: &mut H,
    signals: &mut Signals,
) -> Result<(Code, Time), Failure> {
    let mut lost = pin!(held.watch());
    let mut time = Time::NotLimited;
    let code = loop {
        tokio::select! {
            biased;
            code = command.wait() => break code?,
            signal = signals.recv() => command.forward(signal),
            error = &mut lost, if matches!(time, Time::NotLimited) => {
                say(&format!("{}; ending the command", chain(&error)));
                command.stop();
                time = Time::Left(Box::pin(sleep(args.grace)));
            }
            () = time.is_up() => {
                say("the command did not end within the grace period; killing it");
                command.kill();
                time = Time::Up;
            }
        }
    };
    Ok((code, time))
}

/// What the command has left once the lock is lost.
enum Time {
    NotLimited,
    Left(Pin<Box<Sleep>>),
    Up,
}

impl Time {
    async fn is_up(&mut self) {
        match self {
            Self::Left(sleep) => sleep.await,
            Self::NotLimited | Self::Up => pending().await,
        }
    }
}

async fn release<H: Held>(guard: LockGuard<H>, args: &Run, code: Code) -> Code {
    match timeout(RELEASE, guard.release()).await {
        Ok(Ok(())) => code,
        // a transaction whose end is not known may have ended before
        Ok(Err(
            error @ (Error::Lost { .. } | Error::Aborted { .. } | Error::CommitUnknown { .. }),
        )) => {
            say(&format!("{}, while the command ran", chain(&error)));
            Code(args.lost_exit_code)
        }
        Ok(Err(error)) => {
            say(&format!(
                "cannot release the lock in order: {}",
                chain(&error)
            ));
            code
        }
        Err(_) => {
            say("the server does not confirm the release");
            code
        }
    }
}
