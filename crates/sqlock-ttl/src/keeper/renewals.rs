//! Keeping leases.

use std::time::Duration;

use sqlock_core::{LossCause, Result};
use tokio::time::Instant;

use super::book::Book;
use crate::{
    clock::Moment,
    store::{LeaseId, Renewal, Renewed},
};

/// Leases in one statement.
const MAX_LEASES: usize = 1000;
/// The shortest time from a renewal that failed to the next attempt.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

/// A lease that is to be renewed.
#[derive(Debug)]
pub(super) struct Due {
    grant: u64,
    ids: Vec<LeaseId>,
    ttl: Duration,
}

impl Due {
    pub(super) fn renewals(&self) -> impl Iterator<Item = Renewal> + '_ {
        self.ids.iter().map(|lease| Renewal {
            lease: lease.clone(),
            ttl: self.ttl,
        })
    }
}

impl Book {
    /// The leases that one statement is to renew: those that are due, and those that will be soon,
    /// so that leases gather to few statements.
    pub(super) fn due_renewals(&mut self, now: Instant) -> Option<Vec<Due>> {
        let first = self.renewals.first()?.0;
        if self.is_renewing || first > now {
            return None;
        }
        let mut due = Vec::new();
        let mut rows = 0;
        for (at, grant) in &self.renewals {
            let Some(lease) = self.leases.get(grant) else {
                continue;
            };
            if *at > now + lease.ttl / 6 || rows >= MAX_LEASES {
                break;
            }
            rows += lease.ids.len();
            due.push(Due {
                grant: *grant,
                ids: lease.ids.clone(),
                ttl: lease.ttl,
            });
        }
        self.is_renewing = true;
        Some(due)
    }

    pub(super) fn renewed(
        &mut self,
        due: Vec<Due>,
        sent: Moment,
        answer: Result<Vec<Renewed>>,
        now: Instant,
    ) {
        self.is_renewing = false;
        let mut outcomes = match answer {
            Ok(outcomes) => outcomes.into_iter(),
            Err(error) => {
                tracing::warn!(backend = self.backend, %error, leases = due.len(), "renewal failed");
                for due in due {
                    self.renew_again(&due, now);
                }
                return;
            }
        };
        for due in due {
            let parts: Vec<_> = outcomes.by_ref().take(due.ids.len()).collect();
            match worst(&parts) {
                Renewed::Done => self.was_renewed(&due, sent, now),
                Renewed::Busy => self.renew_again(&due, now),
                Renewed::Expired => self.lose(due.grant, LossCause::Expired, now),
                Renewed::TakenOver => self.lose(due.grant, LossCause::TakenOver, now),
                Renewed::Removed => self.lose(due.grant, LossCause::Removed, now),
            }
        }
    }

    fn was_renewed(&mut self, due: &Due, sent: Moment, now: Instant) {
        let Some(lease) = self.leases.get_mut(&due.grant) else {
            return;
        };
        lease.deadline.renewed(sent, due.ttl);
        let end = now + lease.deadline.remaining();
        let at = now + lease.ttl / 3;
        let is_current = lease.ttl == due.ttl;
        if is_current {
            for done in lease.extended.drain(..) {
                done.send(Ok(())).ok();
            }
        }
        // another TTL was asked for meanwhile, and it may be a shorter one
        self.renew_at(due.grant, if is_current { at } else { now });
        self.watch(end);
    }

    fn renew_again(&mut self, due: &Due, now: Instant) {
        let pause = (due.ttl / 20).clamp(SHORTEST_PAUSE, Duration::from_millis(500));
        self.renew_at(due.grant, now + pause);
    }

    pub(super) fn renew_at(&mut self, grant: u64, at: Instant) {
        if let Some(lease) = self.leases.get_mut(&grant) {
            self.renewals.remove(&(lease.renew_at, grant));
            lease.renew_at = at;
            self.renewals.insert((at, grant));
        }
    }

    /// The holders' own deadlines.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.no_expiry_before.is_none_or(|at| now < at) {
            return;
        }
        let mut passed = Vec::new();
        self.no_expiry_before = None;
        let mut next: Option<Duration> = None;
        for (grant, lease) in &self.leases {
            let left = lease.deadline.remaining();
            if left.is_zero() {
                passed.push(*grant);
            } else {
                next = Some(next.map_or(left, |earlier| earlier.min(left)));
            }
        }
        if let Some(left) = next {
            self.watch(now + left);
        }
        for grant in passed {
            self.lose(grant, LossCause::Expired, now);
        }
    }

    /// A lease may end then.
    pub(super) fn watch(&mut self, end: Instant) {
        // past the deadline, not just before it
        let end = end + Duration::from_millis(1);
        self.no_expiry_before = Some(self.no_expiry_before.map_or(end, |at| at.min(end)));
    }

    fn lose(&mut self, grant: u64, cause: LossCause, now: Instant) {
        let Some(lease) = self.leases.remove(&grant) else {
            return;
        };
        self.renewals.remove(&(lease.renew_at, grant));
        // before the answers: who has read one finds the guard to agree
        lease.lost.lose(cause.clone());
        for done in lease.extended {
            done.send(Err(sqlock_core::Error::Lost {
                key: lease.key.clone(),
                cause: cause.clone(),
            }))
            .ok();
        }
        for id in &lease.ids {
            if let Some(entry) = self.entries.get_mut(&id.row) {
                entry.came_free();
            }
        }
        // its other rows, or what the database still thinks is ours
        self.take_back(lease.ids, lease.ttl, now);
    }
}

/// A lease of several rows is worth what the worst of them is.
fn worst(parts: &[Renewed]) -> Renewed {
    let rank = |part: &Renewed| match part {
        Renewed::Done => 0,
        Renewed::Busy => 1,
        Renewed::Expired => 2,
        Renewed::Removed => 3,
        Renewed::TakenOver => 4,
    };
    parts
        .iter()
        .copied()
        .max_by_key(rank)
        .unwrap_or(Renewed::Removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_that_is_gone_is_the_loss_of_all() {
        assert_eq!(worst(&[Renewed::Done, Renewed::Done]), Renewed::Done);
        assert_eq!(
            worst(&[Renewed::Done, Renewed::TakenOver]),
            Renewed::TakenOver
        );
        assert_eq!(worst(&[]), Renewed::Removed);
    }
}
