//! Redis on one node, by the crate `rslock`.

use std::time::Duration;

use anyhow::{Context as _, Result};
use rslock::LockManager;

use crate::cycle::{Cycle, cycle};

pub(crate) const LACKS: &str = "loss signal, fencing token; with one node, survival of its loss";
const TTL: Duration = Duration::from_secs(30);

pub(crate) fn manager(url: String) -> LockManager {
    LockManager::new(vec![url])
}

pub(crate) fn lease(url: String) -> Cycle {
    let manager = manager(url);
    cycle(move |key| {
        let manager = manager.clone();
        async move {
            let lock = manager
                .lock(key.to_string().as_str(), TTL)
                .await
                .context("the lock is somebody else's")?;
            manager.unlock(&lock).await;
            Ok(())
        }
    })
}

/// Waits by trying every 50 ms, as the crate has it.
pub(crate) async fn wait(manager: &LockManager, key: &str) -> Result<rslock::Lock> {
    loop {
        if let Ok(lock) = manager.lock(key, TTL).await {
            return Ok(lock);
        }
    }
}
