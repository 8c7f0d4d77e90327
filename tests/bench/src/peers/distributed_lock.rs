//! The crate `distributed-lock-postgres`.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use distributed_lock_core::traits::{DistributedLock as _, LockHandle as _, LockProvider as _};
use distributed_lock_postgres::PostgresLockProvider;

use crate::cycle::{Cycle, cycle};

pub(crate) const LACKS: &str =
    "cancel safety, an answer only once the lock is free; a connection a lock";

pub(crate) async fn session(url: String) -> Result<Cycle> {
    let provider = PostgresLockProvider::new(url)
        .await
        .context("distributed-lock-postgres connects")?;
    let provider = Arc::new(provider);
    Ok(cycle(move |key| {
        let provider = provider.clone();
        async move {
            let lock = provider.create_lock(&format!("{key:016x}"));
            // A release of it may be under way after it was answered.
            let handle = loop {
                match lock.try_acquire().await? {
                    Some(handle) => break handle,
                    None => tokio::task::yield_now().await,
                }
            };
            handle.release().await?;
            Ok(())
        }
    }))
}
