//! Locks in this process, for unit tests.

use async_trait::async_trait;

use crate::{
    FencingToken, Held, LockBackend, LockGuard, LockKey, Lost, Request, Result, SharedBackend,
};

/// Locks that are kept in this process.
#[derive(Debug, Clone, Default)]
pub struct MemoryBackend {}

/// A lock of a [`MemoryBackend`].
#[derive(Debug)]
pub struct MemoryHeld {}

impl MemoryBackend {
    /// A backend that holds nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
#[async_trait]
impl LockBackend for MemoryBackend {
    type Held = MemoryHeld;
    fn name(&self) -> &'static str {
        "memory"
    }
    async fn acquire(&self, _request: Request) -> Result<Option<LockGuard<MemoryHeld>>> {
        Ok(None)
    }
    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}
#[async_trait]
impl SharedBackend for MemoryBackend {
    async fn acquire_shared(&self, _request: Request) -> Result<Option<LockGuard<MemoryHeld>>> {
        Ok(None)
    }
}
#[async_trait]
impl Held for MemoryHeld {
    fn backend(&self) -> &'static str {
        "memory"
    }
    fn keys(&self) -> &[LockKey] {
        &[]
    }
    fn token(&self) -> Option<FencingToken> {
        None
    }
    fn lost(&self) -> Lost {
        Lost::never()
    }
    async fn release(&mut self) -> Result<()> {
        Ok(())
    }
    fn abandon(&mut self) {}
}
