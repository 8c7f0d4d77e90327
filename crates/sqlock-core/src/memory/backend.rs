use std::sync::Arc;

use async_trait::async_trait;

use super::{BACKEND, Faults, MemoryHeld, node::Node, table::Table};
use crate::{
    Holder, InspectBackend, LockBackend, LockGuard, LockKey, Request, Result, SharedBackend,
    TellsLoss, WritersFirst,
};

/// Locks that are kept in this process.
///
/// A clone is the same backend. To play several nodes that contend for the same locks, give each
/// its [`another_node`](Self::another_node):
///
/// ```
/// # use sqlock_core::{Locks, MemoryBackend};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
/// let backend = MemoryBackend::new();
/// let here = Locks::new(backend.clone());
/// let there = Locks::new(backend.another_node());
///
/// let guard = here.acquire("daily-report").await?;
/// assert!(there.try_acquire("daily-report").await?.is_none());
/// guard.release().await?;
/// assert_eq!(backend.held(), 0);
/// # Ok(()) }
/// ```
///
/// Requests for a key are served in the order in which they came: neither a try nor a reader
/// passes a writer that waits. A request for several keys waits until it can have them all, and
/// holds none of them meanwhile. Tokens rise for the life of the process.
#[derive(Debug, Clone, Default)]
pub struct MemoryBackend {
    table: Arc<Table>,
    node: Arc<Node>,
}

impl MemoryBackend {
    /// A backend that holds nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another node that contends for the same locks. It is shut down, and made to fail, on its
    /// own.
    #[must_use]
    pub fn another_node(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            node: Arc::default(),
        }
    }

    /// What can be made to go wrong on this node.
    pub fn faults(&self) -> Faults<'_> {
        Faults {
            table: &self.table,
            node: &self.node,
        }
    }

    /// How many locks are held now, on all nodes. A guard over two keys holds two, and so do two
    /// readers of one key.
    #[must_use]
    pub fn held(&self) -> usize {
        self.table.held()
    }

    /// How many requests wait for locks now, on all nodes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.table.waiting()
    }

    async fn ask(&self, request: Request) -> Result<Option<LockGuard<MemoryHeld>>> {
        let deadline = request.deadline();
        let admission = self.node.acquires.pass();
        match deadline {
            None => admission.await?,
            Some(deadline) => match deadline.bound(admission).await {
                None => return Ok(None),
                Some(admitted) => admitted?,
            },
        }
        self.table
            .offer(&self.node, request)?
            .answer(deadline)
            .await
    }
}

#[async_trait]
impl LockBackend for MemoryBackend {
    type Held = MemoryHeld;

    fn name(&self) -> &'static str {
        BACKEND
    }

    /// # Errors
    ///
    /// [`Error::ShutDown`](crate::Error::ShutDown), and what [`Faults::acquires`] was told.
    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<MemoryHeld>>> {
        self.ask(request).await
    }

    /// Never fails; ends the locks and the waiting of this node only.
    async fn shutdown(&self) -> Result<()> {
        self.table.shut_down(&self.node);
        self.node.heal();
        Ok(())
    }
}

#[async_trait]
impl SharedBackend for MemoryBackend {
    async fn acquire_shared(&self, request: Request) -> Result<Option<LockGuard<MemoryHeld>>> {
        self.ask(request).await
    }
}

impl TellsLoss for MemoryBackend {}

impl WritersFirst for MemoryBackend {}

#[async_trait]
impl InspectBackend for MemoryBackend {
    async fn holders(&self, key: &LockKey) -> Result<Vec<Holder>> {
        Ok(self.table.holders(key.id()))
    }
}
