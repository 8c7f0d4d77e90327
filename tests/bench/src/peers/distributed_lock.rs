//! The crate `distributed-lock-postgres`.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use distributed_lock_core::traits::{DistributedLock as _, LockHandle as _, LockProvider as _};
use distributed_lock_postgres::PostgresLockProvider;

use crate::cycle::{Cycle, cycle};

pub(crate) const LACKS: &str = "cancel safety; a connection a lock";

pub(crate) async fn session(url: String) -> Result<Cycle> {
    let provider = PostgresLockProvider::new(url)
        .await
        .context("distributed-lock-postgres connects")?;
    let provider = Arc::new(provider);
    Ok(cycle(move |key| {
        let provider = provider.clone();
        async move {
            let lock = provider.create_lock(&format!("{key:016x}"));
            let handle = (lock.try_acquire().await?).context("the lock is somebody else's")?;
            handle.release().await?;
            Ok(())
        }
    }))
}
