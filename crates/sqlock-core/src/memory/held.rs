use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{
    BACKEND,
    grants::{Grant, Number},
    node::Node,
    table::Table,
};
use crate::{FencingToken, Held, LockGuard, LockKey, Lost, Result};

/// A lock of a [`MemoryBackend`](super::MemoryBackend).
pub struct MemoryHeld {
    table: Arc<Table>,
    node: Arc<Node>,
    number: Number,
    keys: Arc<[LockKey]>,
    token: FencingToken,
    lost: Lost,
    ended: bool,
}

impl MemoryHeld {
    pub(super) fn guard(table: &Arc<Table>, grant: Grant) -> LockGuard<Self> {
        LockGuard::arm(Self {
            table: Arc::clone(table),
            node: grant.node,
            number: grant.number,
            keys: grant.keys,
            token: grant.token,
            lost: grant.lost,
            ended: false,
        })
    }
}

#[async_trait]
impl Held for MemoryHeld {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn keys(&self) -> &[LockKey] {
        &self.keys
    }

    fn token(&self) -> Option<FencingToken> {
        Some(self.token)
    }

    fn lost(&self) -> Lost {
        self.lost.clone()
    }

    async fn release(&mut self) -> Result<()> {
        self.lost.check()?;
        self.node.releases.pass().await?;
        self.abandon();
        if self.ended {
            return Ok(());
        }
        // it was taken away, and the word of that is on its way
        Err(self.lost().await)
    }

    fn abandon(&mut self) {
        self.ended |= self.table.end(self.number);
    }
}

impl fmt::Debug for MemoryHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryHeld")
            .field("number", &self.number)
            .field("keys", &self.keys)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
