//! Giving leases back.

use std::{sync::Arc, time::Duration};

use sqlock_core::{Error, LossCause, Result};
use tokio::time::Instant;

use super::{
    book::{Book, Lease, Release, State},
    waiter::Entry,
};
use crate::{
    command::Done,
    store::{GiveBack, GivenBack, LeaseId},
};

/// Before a lease is given back again whose row somebody had locked.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

impl Book {
    /// By the grant's number: an unknown one was released before.
    pub(super) fn release(&mut self, grant: u64, done: Option<Done>) {
        let Some(lease) = self.leases.remove(&grant) else {
            if let Some(done) = done {
                done.send(Ok(())).ok();
            }
            return;
        };
        self.renewals.remove(&(lease.renew_at, grant));
        for id in &lease.ids {
            if let Some(entry) = self.entries.get_mut(&id.row) {
                entry.came_free();
            }
            self.tidy(&id.row);
        }
        let mut release = going_back(&lease, done);
        if lease.deadline.has_passed() {
            lease.lost.lose(LossCause::Expired);
            if let Some((done, key)) = release.done.take() {
                let cause = LossCause::Expired;
                done.send(Err(Error::Lost { key, cause })).ok();
            }
        } else {
            lease.lost.released();
        }
        self.releases.push_back(release);
    }

    pub(super) fn take_back(&mut self, ids: Vec<LeaseId>, ttl: Duration, now: Instant) {
        let items = ids.into_iter().map(|lease| GiveBack {
            lease,
            hold_at_least: Duration::ZERO,
            hold_on: Duration::ZERO,
        });
        self.releases.push_back(Release {
            items: items.collect(),
            done: None,
            not_before: None,
            until: now + ttl,
        });
    }

    pub(super) fn given_back(
        &mut self,
        releases: Vec<Release>,
        outcomes: &[GivenBack],
        now: Instant,
    ) {
        let mut outcomes = outcomes.iter();
        for mut release in releases {
            let count = release.items.len();
            let parts: Vec<_> = outcomes.by_ref().take(count).copied().collect();
            if parts.contains(&GivenBack::NotOurs)
                && let Some((done, key)) = release.done.take()
            {
                let cause = LossCause::TakenOver;
                done.send(Err(Error::Lost { key, cause })).ok();
            }
            let gone = release.items.iter().zip(&parts);
            let gone = gone.filter(|(_, part)| **part == GivenBack::Done);
            let rows: Vec<_> = gone.map(|(item, _)| Arc::clone(&item.lease.row)).collect();
            let mut busy = parts.iter().map(|part| *part == GivenBack::Busy);
            release.items.retain(|_| busy.next().unwrap_or(false));
            if !release.items.is_empty() && release.until > now {
                release.not_before = Some(now + BUSY_PAUSE);
                self.releases.push_back(release);
                self.came_free(rows.into_iter(), None, now);
            } else {
                let done = release.done.map(|(done, _)| done);
                self.came_free(rows.into_iter(), done, now);
            }
        }
    }

    pub(super) fn extend(&mut self, grant: u64, ttl: Duration, done: Done) {
        match self.leases.get_mut(&grant) {
            Some(lease) => {
                lease.ttl = ttl;
                lease.extended.push(done);
                self.renew_at(grant, Instant::now());
            }
            // the guard knows why
            None => drop(done),
        }
    }

    pub(super) fn shut_down(&mut self, done: Done) {
        match &mut self.state {
            State::ShuttingDown(told) | State::Closing(told) => return told.push(done),
            State::Closed => {
                done.send(Ok(())).ok();
                return;
            }
            State::Open => {}
        }
        self.renewals.clear();
        for (_, lease) in std::mem::take(&mut self.leases) {
            self.releases.push_back(going_back(&lease, None));
            lease.lost.lose(LossCause::ShutDown);
        }
        self.wanted.clear();
        self.line.leave_all();
        let entries = std::mem::take(&mut self.entries);
        for waiter in entries.into_values().flat_map(|entry| entry.queue) {
            waiter.answer.send(Err(self.was_shut_down())).ok();
        }
        self.state = State::ShuttingDown(vec![done]);
        self.settle_shut_down();
    }

    /// Everything is back, or cannot be given back.
    pub(super) fn settle_shut_down(&mut self) {
        let is_over = !self.is_exchanging && (!self.is_leaving() || self.outage.is_some());
        if is_over && let State::ShuttingDown(told) = &mut self.state {
            self.state = State::Closing(std::mem::take(told));
        }
    }

    /// `true` once: the connections are to be closed now.
    pub(super) fn is_closing(&mut self) -> bool {
        matches!(self.state, State::Closing(_)) && !std::mem::replace(&mut self.is_exchanging, true)
    }

    pub(super) fn closed(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Closed);
        if let State::Closing(told) = state {
            for done in told {
                let outcome: Result<()> = match self.outage {
                    None => Ok(()),
                    Some(_) => Err(Error::Unavailable {
                        backend: self.backend,
                        source: "leases could not be given back, and run out".into(),
                    }),
                };
                done.send(outcome).ok();
            }
        }
    }
}

fn going_back(lease: &Lease, done: Option<Done>) -> Release {
    let held = lease.granted.elapsed();
    let items = lease.ids.iter().map(|id| GiveBack {
        lease: id.clone(),
        hold_at_least: lease.hold_at_least,
        hold_on: lease.hold_at_least.saturating_sub(held),
    });
    Release {
        items: items.collect(),
        done: done.map(|done| (done, lease.key.clone())),
        not_before: None,
        until: Instant::now() + lease.deadline.remaining() + lease.ttl / 10,
    }
}

impl Entry {
    /// Answers those who only tried.
    pub(super) fn refuse_tries(&mut self) {
        let queue = std::mem::take(&mut self.queue);
        for waiter in queue {
            if waiter.waits() {
                self.queue.push_back(waiter);
            } else {
                waiter.refuse();
            }
        }
    }
}
