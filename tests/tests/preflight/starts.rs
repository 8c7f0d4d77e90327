//! Cold starts: what a process does when it begins.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use sqlock::{Error, Locks, SessionBackend};
use tokio::task::JoinSet;

use crate::support::{PATIENCE, SessionOptions, within};

/// As many backends as `count`, so many at once, each with its first lock. What each was told, where
/// it was refused.
pub(crate) async fn cold_starts(url: &str, count: usize, at_once: usize) -> Vec<Error> {
    let left = Arc::new(AtomicUsize::new(count));
    let mut starters = JoinSet::new();
    for _ in 0..at_once {
        let (url, left) = (url.to_owned(), Arc::clone(&left));
        starters.spawn(async move {
            let mut refused = Vec::new();
            let take = |left: usize| left.checked_sub(1);
            while let Ok(number) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                refused.extend(cold_start(&url, number).await.err());
            }
            refused
        });
    }
    starters.join_all().await.into_iter().flatten().collect()
}

/// What a start that must be refused is told.
pub(crate) async fn refusal(url: &str) -> Error {
    let attempt = SessionBackend::connect(url);
    let refused = within(PATIENCE, "the refusal", attempt).await;
    refused.expect_err("the start is refused")
}

async fn cold_start(url: &str, number: usize) -> Result<(), Error> {
    let locks = Locks::new(SessionOptions::new().connect(url).await?);
    let key = i64::try_from(number).unwrap();
    let guard = locks.try_acquire(key).await?;
    let guard = guard.unwrap_or_else(|| panic!("{key} is this start's own"));
    guard.release().await?;
    locks.shutdown().await
}
