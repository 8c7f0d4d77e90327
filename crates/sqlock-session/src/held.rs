use std::sync::Arc;

use async_trait::async_trait;
use sqlock_core::{Error, FencingToken, Held, LockKey, LossCause, Lost, Result};
use tokio::sync::mpsc;

use crate::{
    BACKEND,
    command::{Command, Receipt},
};

/// A lock that a [`SessionBackend`](crate::SessionBackend) holds.
#[derive(Debug)]
pub struct SessionHeld {
    pub(crate) grant: u64,
    pub(crate) keys: Arc<[LockKey]>,
    pub(crate) lost: Lost,
    pub(crate) token: Option<FencingToken>,
    pub(crate) owner: mpsc::UnboundedSender<Command>,
}

#[async_trait]
impl Held for SessionHeld {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn keys(&self) -> &[LockKey] {
        &self.keys
    }

    fn token(&self) -> Option<FencingToken> {
        self.token
    }

    fn lost(&self) -> Lost {
        self.lost.clone()
    }

    async fn release(&mut self) -> Result<()> {
        self.lost.check()?;
        let (receipt, released) = Receipt::new(self.key().clone());
        let release = Command::Release {
            grant: self.grant,
            receipt: Some(receipt),
        };
        if self.owner.send(release).is_err() {
            return Err(self.owner_gone());
        }
        released.await.unwrap_or_else(|_| Err(self.owner_gone()))?;
        // lost before the owner came to the release
        self.lost.check()
    }

    fn abandon(&mut self) {
        // without an owner there is no session, and so no lock
        self.owner
            .send(Command::Release {
                grant: self.grant,
                receipt: None,
            })
            .ok();
    }
}

impl SessionHeld {
    /// By which errors name the lock.
    #[allow(clippy::indexing_slicing, reason = "a request has a key at least")]
    fn key(&self) -> &LockKey {
        &self.keys[0]
    }

    fn owner_gone(&self) -> Error {
        self.lost.check().err().unwrap_or_else(|| Error::Lost {
            key: self.key().clone(),
            cause: LossCause::OwnerGone,
        })
    }
}
