//! Getting the lock, or not.

use std::time::Duration;

use sqlock::{Error, InspectBackend, Lock, LockGuard, Locks, Wait};
use tokio::time::{sleep, timeout};

use super::waiting::{Waiting, holders_in_words};
use crate::{
    args::{Patience, Run},
    exit::Failure,
    report::say,
};

/// A wait that is shorter is not worth a word.
const SILENCE: Duration = Duration::from_millis(300);
/// How often a waiting command asks who holds the lock: the answer costs the server something.
const LOOK: Duration = Duration::from_secs(2);

/// `None`, and a word to the user, where others hold it for longer than we wait.
pub(super) async fn take<B: InspectBackend>(
    args: &Run,
    locks: &Locks<B>,
    lock: Lock<B>,
) -> Result<Option<LockGuard<B::Held>>, Failure> {
    let wait = match args.patience() {
        Patience::None => None,
        Patience::Within(limit) => Some(Wait::at_most(limit)),
        Patience::Endless => Some(Wait::forever()),
    };
    let taken = match wait {
        None => lock.try_acquire().await,
        Some(wait) => {
            let acquired = tokio::select! {
                biased;
                acquired = lock.within(wait).acquire() => acquired,
                never = show(args, locks) => match never {},
            };
            match acquired {
                Err(Error::Timeout { .. }) => Ok(None),
                other => other.map(Some),
            }
        }
    };
    let taken =
        taken.map_err(|error| Failure::of(format!("cannot take lock \"{}\"", args.key), error))?;
    if taken.is_none() {
        refuse(args, locks).await;
    }
    Ok(taken)
}

/// Keeps the user informed for as long as it is polled.
async fn show<B: InspectBackend>(args: &Run, locks: &Locks<B>) -> std::convert::Infallible {
    sleep(SILENCE).await;
    let mut waiting = Waiting::new(&args.key);
    loop {
        match locks.inspect(&args.key).await {
            Ok(holders) => waiting.show(&holders),
            Err(error) => tracing::debug!(%error, "cannot tell who holds the lock"),
        }
        sleep(LOOK).await;
    }
}

async fn refuse<B: InspectBackend>(args: &Run, locks: &Locks<B>) {
    let holders = timeout(LOOK, locks.inspect(&args.key)).await;
    let by = match holders {
        Ok(Ok(holders)) => holders_in_words(&holders),
        _ => None,
    };
    let by = by.map_or("by another".to_owned(), |by| format!("by {by}"));
    say(&match args.patience() {
        Patience::Within(limit) => format!(
            "lock \"{}\" is still held {by}; gave up after {}",
            args.key,
            humantime::format_duration(limit)
        ),
        _ => format!("lock \"{}\" is held {by}", args.key),
    });
}
