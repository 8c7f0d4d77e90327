//! Numbers that differ from process to process and call to call. Not for secrets.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Any number below `limit`, which is not zero.
pub(crate) fn below(limit: usize) -> usize {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // its keys are random, and the count sees to it that no two calls hash the same
    let number = RandomState::new().hash_one(CALLS.fetch_add(1, Ordering::Relaxed));
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    usize::try_from(number % limit).unwrap_or(0)
}

/// Between a half of `duration` and all of it.
pub(crate) fn up_to(duration: Duration) -> Duration {
    let part = u32::try_from(below(1000)).unwrap_or(0);
    duration / 2 + duration / 2000 * part
}
