//! The command, while the lock is held.

use std::{future::pending, pin::Pin, pin::pin, time::Duration};

use sqlock::{Error, Held, LockGuard};
use tokio::time::{Sleep, sleep, timeout};

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
pub(super) async fn supervise<H: Held>(
    args: &Run,
    guard: LockGuard<H>,
    signals: &mut Signals,
) -> Result<Code, Failure> {
    let variables = [
        ("SQLOCK_KEY", Some(guard.key().to_string())),
        // not that of another lock around this one
        ("SQLOCK_TOKEN", guard.token().map(|token| token.to_string())),
    ];
    let mut command = Supervised::start(&args.command, &variables)?;
    let mut lost = pin!(guard.lost().wait());
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
    match time {
        Time::NotLimited => Ok(release(guard, args, code).await),
        Time::Left(_) | Time::Up => Ok(Code(args.lost_exit_code)),
    }
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
        Ok(Err(error @ Error::Lost { .. })) => {
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
