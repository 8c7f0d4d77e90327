use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlock_core::{Error, FencingToken, Held, Leased, LockKey, LossCause, Lost, Result};
use tokio::sync::{mpsc, oneshot};

use crate::{clock::Deadline, command::Command, options::check_ttl};

/// A lease that a TTL backend holds.
#[derive(Debug)]
pub struct TtlHeld {
    pub(crate) backend: &'static str,
    pub(crate) grant: u64,
    pub(crate) keys: Arc<[LockKey]>,
    pub(crate) token: Option<FencingToken>,
    pub(crate) deadline: Arc<Deadline>,
    pub(crate) lost: Lost,
    pub(crate) keeper: mpsc::UnboundedSender<Command>,
}

#[async_trait]
impl Held for TtlHeld {
    fn backend(&self) -> &'static str {
        self.backend
    }

    fn keys(&self) -> &[LockKey] {
        &self.keys
    }

    /// Of several keys, the highest of their tokens: it is above that of every earlier holder of
    /// each. `None` in a table that others use too.
    fn token(&self) -> Option<FencingToken> {
        self.token
    }

    fn lost(&self) -> Lost {
        self.lost.clone()
    }

    async fn release(&mut self) -> Result<()> {
        let grant = self.grant;
        self.ask(|done| Command::Release {
            grant,
            done: Some(done),
        })
        .await
    }

    fn abandon(&mut self) {
        // without a keeper nobody renews the lease, which then ends by itself
        self.keeper
            .send(Command::Release {
                grant: self.grant,
                done: None,
            })
            .ok();
    }
}

#[async_trait]
impl Leased for TtlHeld {
    fn remaining(&self) -> Duration {
        match self.lost.cause() {
            None => self.deadline.remaining(),
            Some(_) => Duration::ZERO,
        }
    }

    async fn extend(&mut self, ttl: Duration) -> Result<()> {
        check_ttl(ttl)?;
        let grant = self.grant;
        self.ask(|done| Command::Extend { grant, ttl, done }).await
    }
}

impl TtlHeld {
    async fn ask(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<()>>) -> Command,
    ) -> Result<()> {
        self.lost.check()?;
        let (done, answer) = oneshot::channel();
        if self.keeper.send(command(done)).is_err() {
            return Err(self.keeper_gone());
        }
        answer.await.unwrap_or_else(|_| Err(self.keeper_gone()))
    }

    /// By which errors name the lock.
    #[allow(clippy::indexing_slicing, reason = "a request has a key at least")]
    fn key(&self) -> &LockKey {
        &self.keys[0]
    }

    fn keeper_gone(&self) -> Error {
        self.lost.check().err().unwrap_or_else(|| Error::Lost {
            key: self.key().clone(),
            cause: LossCause::OwnerGone,
        })
    }
}
