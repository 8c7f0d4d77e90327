use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use sqlock_core::{
    Error, Expiry, FencingToken, Held, Leased, LockKey, LossCause, Lost, LostSender, Result,
};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{Flaw, table::Table};

/// What the holder knows of its lease, shared with the task that renews it.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) table: Arc<Table>,
    pub(super) keys: Arc<[LockKey]>,
    pub(super) owner: u64,
    pub(super) terms: Mutex<Terms>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) deadline: Instant,
    pub(super) ttl: Duration,
}

impl Lease {
    fn terms(&self) -> Terms {
        *self.terms.lock().unwrap()
    }

    pub(super) fn remaining(&self) -> Duration {
        match self.table.flaw {
            Flaw::BelievesForever => Duration::from_secs(60),
            Flaw::GoesByTheServersClock => self.table.left(&self.keys[0]),
            _ => self
                .terms()
                .deadline
                .saturating_duration_since(Instant::now()),
        }
    }

    /// `None` where no answer came in time.
    async fn renew(&self, ttl: Duration) -> Option<bool> {
        let sent = Instant::now();
        let entered = timeout_at(self.terms().deadline, self.table.enter()).await;
        entered.ok()?;
        let is_ours = match self.table.flaw {
            Flaw::ExtendsItselfOnly => true,
            _ => self.table.renew(&self.keys, self.owner, ttl),
        };
        if is_ours {
            let deadline = deadline(sent, ttl);
            *self.terms.lock().unwrap() = Terms { deadline, ttl };
        }
        Some(is_ours)
    }
}

/// A little before the server's.
pub(super) fn deadline(sent: Instant, ttl: Duration) -> Instant {
    sent + ttl - ttl / 20
}

/// Asked by everybody who looks at the loss signal.
#[derive(Debug)]
pub(super) struct OwnDeadline(pub(super) Arc<Lease>);

impl Expiry for OwnDeadline {
    fn expired(&self) -> Option<LossCause> {
        self.0.remaining().is_zero().then_some(LossCause::Expired)
    }
}

/// Whoever takes it tells the end.
pub(super) type Ending = Arc<Mutex<Option<LostSender>>>;

/// Renews the lease until it ends.
pub(super) async fn keep(lease: Arc<Lease>, ending: Ending) {
    loop {
        let Terms { deadline, ttl } = lease.terms();
        sleep(ttl / 3).await;
        let outcome = match lease.table.flaw {
            Flaw::NeverRenews => {
                sleep_until(deadline).await;
                None
            }
            Flaw::ExtendsItselfOnly => Some(lease.table.renew(&lease.keys, lease.owner, ttl)),
            _ => lease.renew(ttl).await,
        };
        let cause = match outcome {
            Some(true) => continue,
            Some(false) => LossCause::TakenOver,
            None if lease.table.flaw == Flaw::TellsNobody => return std::future::pending().await,
            None => LossCause::Expired,
        };
        if let Some(sender) = ending.lock().unwrap().take() {
            sender.lose(cause);
        }
        return;
    }
}

#[derive(Debug)]
pub(crate) struct LeaseHeld {
    pub(super) lease: Arc<Lease>,
    pub(super) token: FencingToken,
    pub(super) lost: Lost,
    pub(super) ending: Ending,
    pub(super) keeper: tokio::task::AbortHandle,
}

#[async_trait]
impl Held for LeaseHeld {
    fn backend(&self) -> &'static str {
        "leasing"
    }

    fn keys(&self) -> &[LockKey] {
        &self.lease.keys
    }

    fn token(&self) -> Option<FencingToken> {
        Some(self.token)
    }

    fn lost(&self) -> Lost {
        self.lost.clone()
    }

    async fn release(&mut self) -> Result<()> {
        self.lost.check()?;
        self.abandon();
        Ok(())
    }

    fn abandon(&mut self) {
        self.keeper.abort();
        self.lease
            .table
            .give_back(&self.lease.keys, self.lease.owner);
        if let Some(sender) = self.ending.lock().unwrap().take() {
            sender.released();
        }
    }
}

#[async_trait]
impl Leased for LeaseHeld {
    fn remaining(&self) -> Duration {
        match self.lost.cause() {
            None => self.lease.remaining(),
            Some(_) => Duration::ZERO,
        }
    }

    async fn extend(&mut self, ttl: Duration) -> Result<()> {
        let flaw = self.lease.table.flaw;
        if flaw != Flaw::RevivesExpired {
            self.lost.check()?;
        }
        let ttl = match flaw {
            Flaw::ExtendsNothing => self.lease.terms().ttl,
            _ => ttl,
        };
        if self.lease.renew(ttl).await == Some(true) {
            return Ok(());
        }
        if let Some(sender) = self.ending.lock().unwrap().take() {
            sender.lose(LossCause::TakenOver);
        }
        Err(Error::Lost {
            key: self.lease.keys[0].clone(),
            cause: LossCause::TakenOver,
        })
    }
}
