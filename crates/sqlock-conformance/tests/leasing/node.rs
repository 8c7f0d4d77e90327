use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use sqlock_core::{
    FencingToken, LeaseBackend, LockBackend, LockGuard, LostSender, Request, Result,
};
use tokio::time::{Instant, sleep};

use super::{
    Flaw,
    held::{Lease, LeaseHeld, OwnDeadline, Terms, deadline, keep},
    table::{Table, Taken},
};

#[derive(Debug)]
pub(crate) struct LeaseNode {
    pub(super) table: Arc<Table>,
    pub(super) ttl: Duration,
}

impl LeaseNode {
    fn guard(&self, request: &Request, taken: Taken, terms: Terms) -> LockGuard<LeaseHeld> {
        let lease = Arc::new(Lease {
            table: Arc::clone(&self.table),
            keys: Arc::clone(request.keys()),
            owner: taken.owner,
            terms: Mutex::new(terms),
        });
        let expiry = Arc::new(OwnDeadline(Arc::clone(&lease)));
        let (sender, lost) = match self.table.flaw {
            Flaw::BelievesForever => LostSender::new("leasing", request),
            _ => LostSender::with_expiry("leasing", request, expiry),
        };
        let ending = Arc::new(Mutex::new(Some(sender)));
        let keeper = tokio::spawn(keep(Arc::clone(&lease), Arc::clone(&ending)));
        LockGuard::arm(LeaseHeld {
            lease,
            token: FencingToken::new(taken.token),
            lost,
            ending,
            keeper: keeper.abort_handle(),
        })
    }
}

#[async_trait]
impl LockBackend for LeaseNode {
    type Held = LeaseHeld;

    fn name(&self) -> &'static str {
        "leasing"
    }

    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<LeaseHeld>>> {
        let ttl = request.lease().ttl.unwrap_or(self.ttl);
        loop {
            let sent = Instant::now();
            self.table.enter().await;
            if let Some(taken) = self.table.take(request.keys(), ttl) {
                let deadline = deadline(sent, ttl);
                if deadline > Instant::now() || self.table.flaw == Flaw::GivesLate {
                    return Ok(Some(self.guard(&request, taken, Terms { deadline, ttl })));
                }
                self.table.give_back(request.keys(), taken.owner);
                continue;
            }
            match request.deadline() {
                Some(deadline) if !deadline.has_passed() => sleep(ttl / 100).await,
                _ => return Ok(None),
            }
        }
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}

impl LeaseBackend for LeaseNode {}
