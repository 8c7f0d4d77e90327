use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sqlock_core::{IntoLockKey, LockGuard, Locks, Semaphore};

use crate::Harness;

/// The world of one case, with what cases need again and again.
pub struct World<H>(Arc<H>);

/// A guard of the harness's backend.
pub(crate) type Guard<H> = LockGuard<<<H as Harness>::Backend as sqlock_core::LockBackend>::Held>;

impl<H: Harness> World<H> {
    pub(crate) async fn start() -> Self {
        Self(Arc::new(H::start().await))
    }

    /// The harness itself.
    #[must_use]
    pub fn harness(&self) -> &H {
        &self.0
    }

    /// A new node.
    pub async fn node(&self) -> Locks<H::Backend> {
        self.0.node().await
    }

    /// Two new nodes that contend with each other.
    pub async fn two_nodes(&self) -> (Locks<H::Backend>, Locks<H::Backend>) {
        (self.node().await, self.node().await)
    }

    /// Waits until this many locks are held as the server sees it.
    pub async fn until_held(&self, expected: usize) {
        let started = Instant::now();
        loop {
            let held = self.0.held().await;
            if held == expected {
                return;
            }
            assert!(
                started.elapsed() < H::PATIENCE,
                "{held} locks are held, and {expected} should be",
            );
            pause().await;
        }
    }

    /// Waits until nothing is left on the server.
    pub async fn until_free(&self) {
        let started = Instant::now();
        loop {
            let leftovers = self.0.leftovers().await;
            if leftovers == 0 {
                return;
            }
            assert!(
                started.elapsed() < H::PATIENCE,
                "{leftovers} locks are left behind",
            );
            pause().await;
        }
    }

    /// Takes a lock that nobody holds, or that is just being released.
    pub(crate) async fn take(
        &self,
        locks: &Locks<H::Backend>,
        key: impl IntoLockKey,
        why: &str,
    ) -> Guard<H> {
        match locks.acquire_within(key, H::PATIENCE).await {
            Ok(guard) => guard,
            Err(error) => panic!("{why}: {error:?}"),
        }
    }

    /// Takes all permits of a semaphore, which nobody holds, or which are just being returned.
    pub(crate) async fn take_all(&self, semaphore: &Semaphore<H::Backend>) -> Vec<Guard<H>> {
        let mut permits = Vec::new();
        for number in 0..semaphore.permits() {
            match semaphore.acquire_within(H::PATIENCE).await {
                Ok(permit) => permits.push(permit),
                Err(error) => panic!("permit {number} is missing: {error:?}"),
            }
        }
        permits
    }
}

impl<H> Clone for World<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<H> std::fmt::Debug for World<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}
