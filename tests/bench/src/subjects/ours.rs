//! sqlock's own cycles.

use anyhow::{Context as _, Result};
use sqlock::session::SessionOptions;
use sqlock::{LockBackend, Locks, SessionBackend};

use crate::cycle::{Cycle, cycle};
use crate::servers::Postgres;

pub(crate) async fn session(postgres: &Postgres) -> Result<Locks<SessionBackend>> {
    let options = SessionOptions::new().lock_budget(50_000);
    Ok(Locks::new(options.connect_with(postgres.direct()).await?))
}

/// Try, and release: both are answered.
pub(crate) fn released<B: LockBackend>(locks: Locks<B>) -> Cycle {
    cycle(move |key| {
        let locks = locks.clone();
        async move {
            let guard = locks.try_acquire(key).await?;
            let guard = guard.context("the lock is somebody else's")?;
            guard.release().await?;
            Ok(())
        }
    })
}

/// Try, and drop: nobody waits for the release.
pub(crate) fn dropped<B: LockBackend>(locks: Locks<B>) -> Cycle {
    cycle(move |key| {
        let locks = locks.clone();
        async move {
            let guard = locks.try_acquire(key).await?;
            drop(guard.context("the lock is somebody else's")?);
            Ok(())
        }
    })
}

/// Waits for the lock, and drops it.
pub(crate) fn awaited<B: LockBackend>(locks: Locks<B>) -> Cycle {
    cycle(move |key| {
        let locks = locks.clone();
        async move {
            drop(locks.acquire(key).await?);
            Ok(())
        }
    })
}
