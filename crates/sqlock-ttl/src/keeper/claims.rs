//! Taking leases.

use std::{sync::Arc, time::Duration};

use sqlock_core::{Error, FencingToken, LockGuard, LostSender, Result};
use tokio::time::Instant;

use super::{
    book::{Book, Lease, Release, State},
    waiter::{Pace, Rhythm, Waiter},
};
use crate::{
    TtlHeld,
    clock::{Deadline, Moment},
    store::{
        Claim, Claimed, Exchange, Exchanged, GiveBack, Hearing, Join, LeaseId, Leave, Owner, Place,
    },
};

/// More rows in one transaction gain nothing, and delay those who come after.
const MAX_ROWS: usize = 512;

/// The content of one transaction.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) joins: Vec<(u64, Join)>,
    pub(super) leaves: Vec<Leave>,
    pub(super) releases: Vec<Release>,
    pub(super) requests: Vec<Claimant>,
}

/// A request whose rows are claimed.
#[derive(Debug)]
pub(super) struct Claimant {
    pub(super) waiter: Waiter,
    owner: Owner,
    pub(super) ttl: Duration,
    hold_at_least: Duration,
    place: Option<Place>,
}

impl Asked {
    pub(super) fn exchange(&self) -> Exchange {
        let items = self.releases.iter().flat_map(|release| &release.items);
        let give_back: Vec<GiveBack> = items.cloned().collect();
        let requests = self.requests.iter().enumerate();
        let claims = requests.flat_map(|(request, claimant)| claimant.claims(request));
        Exchange {
            join: self.joins.iter().map(|(_, join)| join.clone()).collect(),
            leave: self.leaves.clone(),
            give_back,
            claims: claims.collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.joins.is_empty()
            && self.leaves.is_empty()
            && self.releases.is_empty()
            && self.requests.is_empty()
    }
}

impl Claimant {
    fn claims(&self, request: usize) -> impl Iterator<Item = Claim> + '_ {
        let label = self.waiter.request.label().map(Arc::from);
        self.waiter.rows.iter().map(move |row| Claim {
            request,
            row: Arc::clone(row),
            owner: self.owner.clone(),
            ttl: self.ttl,
            label: label.clone(),
            payload: self.waiter.request.lease().payload.clone(),
            place: self.place.clone(),
        })
    }

    pub(super) fn ids(&self) -> Vec<LeaseId> {
        let owner = &self.owner;
        let ids = self.waiter.rows.iter().map(|row| LeaseId {
            row: Arc::clone(row),
            owner: owner.clone(),
        });
        ids.collect()
    }
}

impl Book {
    /// What the next transaction is to do, unless there is nothing, or one is under way.
    pub(super) fn next_exchange(&mut self, now: Instant) -> Option<Asked> {
        if self.is_exchanging || self.outage.is_some_and(|outage| now < outage.again_at) {
            return None;
        }
        let mut asked = Asked::default();
        let mut rows = 0;
        self.releases
            .retain(|release| release.done.is_some() || release.until > now);
        for release in std::mem::take(&mut self.releases) {
            if rows < MAX_ROWS && release.not_before.is_none_or(|at| at <= now) {
                rows += release.items.len();
                asked.releases.push(release);
            } else {
                self.releases.push_back(release);
            }
        }
        let is_due = |row: &&Arc<str>| {
            let entry = self.entries.get(*row);
            entry.is_none_or(|e| !e.is_claimed && e.look_at.is_none_or(|at| at <= now))
        };
        let mut due: Vec<_> = self.wanted.iter().filter(is_due).map(Arc::clone).collect();
        while rows < MAX_ROWS
            && let Some(row) = due.pop()
        {
            let claimant = self.claim(&row, now);
            self.tidy(&row);
            if let Some(claimant) = claimant {
                rows += claimant.waiter.rows.len();
                asked.requests.push(claimant);
            }
        }
        // after the claims, which may have put others in line
        let hearing = self.hearing();
        asked.joins = self.line.take_joins(now, MAX_ROWS, hearing);
        asked.leaves = self.line.take_leaves();
        let is_empty = asked.is_empty();
        self.is_exchanging = !is_empty;
        (!is_empty).then_some(asked)
    }

    /// The first in line claims its rows, unless one of them is held or claimed here.
    fn claim(&mut self, row: &Arc<str>, now: Instant) -> Option<Claimant> {
        loop {
            let entry = self.entries.get_mut(row)?;
            entry.prune();
            if entry.is_claimed {
                // by a request for several rows, since the look at which this was due
                return None;
            }
            if entry.held_by.is_some() {
                entry.refuse_tries();
                return None;
            }
            if !self.line.may_look(entry.queue.front()?.number) {
                return None;
            }
            let waiter = entry.queue.pop_front()?;
            let obstacle = waiter.rows.iter().find(|row| {
                let entry = self.entries.get(*row);
                entry.is_some_and(|entry| entry.held_by.is_some() || entry.is_claimed)
            });
            let Some(obstacle) = obstacle.map(Arc::clone) else {
                for row in waiter.rows.iter() {
                    self.entries.entry(Arc::clone(row)).or_default().claimed();
                }
                let place = self.line.place(waiter.number);
                let terms = waiter.request.lease();
                return Some(Claimant {
                    place,
                    owner: Owner::random(),
                    ttl: terms.ttl.unwrap_or(self.options.ttl),
                    hold_at_least: terms.hold_at_least.unwrap_or(self.options.hold_at_least),
                    waiter,
                });
            };
            // it waits there, and those behind it need not
            if self.keeps_queue() {
                self.has_to_wait(&waiter, now);
            }
            self.enqueue(obstacle, waiter);
        }
    }

    pub(super) fn exchanged(
        &mut self,
        asked: Asked,
        sent: Moment,
        answer: Result<Exchanged>,
        now: Instant,
    ) {
        self.is_exchanging = false;
        match answer {
            Ok(exchanged) => {
                self.outage = None;
                self.given_back(asked.releases, &exchanged.given_back, now);
                let mut answers = exchanged.claimed.into_iter();
                for claimant in asked.requests {
                    let count = claimant.waiter.rows.len();
                    let claimed: Vec<_> = answers.by_ref().take(count).collect();
                    self.claimed(claimant, &claimed, sent, now);
                }
                let arrivals = self.line.joined(&asked.joins, exchanged.tickets);
                self.arrived(arrivals);
                self.left(&asked.leaves);
            }
            Err(error) => self.exchange_failed(asked, &Arc::new(error), now),
        }
        self.settle_shut_down();
    }

    fn claimed(&mut self, claimant: Claimant, claimed: &[Claimed], sent: Moment, now: Instant) {
        self.unclaim(&claimant.waiter);
        if !matches!(self.state, State::Open) {
            // what came through after a shut-down is nobody's
            self.take_back(claimant.ids(), claimant.ttl, now);
            let refusal = Err(self.was_shut_down());
            return self.answer(claimant.waiter, refusal);
        }
        let tokens = claimed.iter().map(|answer| match answer {
            Claimed::Granted(token) => Some(*token),
            Claimed::Refused { .. } | Claimed::Queued { .. } | Claimed::Vanished => None,
        });
        match tokens
            .collect::<Option<Vec<_>>>()
            .and_then(|all| all.into_iter().max())
        {
            Some(token) => self.grant(claimant, token, sent, now),
            None => {
                let is_granted = |answer: &Claimed| matches!(answer, Claimed::Granted(_));
                if claimed.iter().any(is_granted) {
                    // all or none: a part is of no use to anybody
                    self.take_back(claimant.ids(), claimant.ttl, now);
                    self.line.again(claimant.waiter.number, now);
                }
                self.refused(claimant.waiter, claimed, now);
            }
        }
    }

    pub(super) fn unclaim(&mut self, waiter: &Waiter) {
        for row in waiter.rows.iter() {
            self.entries.entry(Arc::clone(row)).or_default().is_claimed = false;
        }
    }

    fn refused(&mut self, waiter: Waiter, claimed: &[Claimed], now: Instant) {
        self.has_to_wait(&waiter, now);
        let answers = waiter.rows.iter().zip(claimed);
        let taken = answers.filter_map(|(row, answer)| match answer {
            Claimed::Refused { remaining } if !remaining.is_zero() => {
                Some((Arc::clone(row), *remaining))
            }
            Claimed::Queued { remaining } => Some((Arc::clone(row), *remaining)),
            _ => None,
        });
        match taken.max_by_key(|(_, remaining)| *remaining) {
            Some((row, remaining)) => self.is_taken(waiter, row, remaining, now),
            None if waiter.has_had_enough(now) => {
                let busy = Err(Error::Unavailable {
                    backend: self.backend,
                    source: "its row is locked by another transaction".into(),
                });
                self.answer(waiter, busy);
            }
            // free a moment ago: looked at again
            None => {
                let row = waiter.first_row();
                self.entries.entry(Arc::clone(&row)).or_default().busy(now);
                self.queue_again(waiter, row);
            }
        }
    }

    fn is_taken(&mut self, waiter: Waiter, row: Arc<str>, remaining: Duration, now: Instant) {
        let is_heard = self.hearing() == Hearing::Listening && self.line.has(waiter.number);
        let pace = Pace {
            longest: self.options.poll,
            rhythm: if is_heard {
                Rhythm::Even
            } else {
                Rhythm::Slowing
            },
        };
        let entries = waiter.rows.iter().filter_map(|row| self.entries.get(row));
        let was_woken = entries.into_iter().any(|entry| entry.was_woken);
        let entry = self.entries.entry(Arc::clone(&row)).or_default();
        entry.refuse_tries();
        entry.missed(remaining, pace, now);
        if was_woken {
            entry.look_at = None;
        }
        if waiter.waits() {
            self.queue_again(waiter, row);
        } else {
            self.answer(waiter, Ok(None));
        }
    }

    pub(super) fn answer(&mut self, waiter: Waiter, answer: Result<Option<LockGuard<TtlHeld>>>) {
        let rows = Arc::clone(&waiter.rows);
        self.line.leave(waiter.number);
        waiter.answer.send(answer).ok();
        rows.iter().for_each(|row| self.tidy(row));
    }

    pub(super) fn queue_again(&mut self, waiter: Waiter, row: Arc<str>) {
        let rows = Arc::clone(&waiter.rows);
        self.enqueue(row, waiter);
        rows.iter().for_each(|row| self.tidy(row));
    }

    fn grant(
        &mut self,
        claimant: Claimant,
        token: Option<FencingToken>,
        sent: Moment,
        now: Instant,
    ) {
        let deadline = Arc::new(Deadline::of(sent, claimant.ttl));
        let ids = claimant.ids();
        let keeper = self.keeper.upgrade();
        let (Some(keeper), false) = (keeper, deadline.has_passed()) else {
            // too late to be of use to anybody
            self.take_back(ids, claimant.ttl, now);
            self.line.again(claimant.waiter.number, now);
            let late = [Claimed::Refused {
                remaining: Duration::ZERO,
            }];
            return self.refused(claimant.waiter, &late, now);
        };
        self.line.won(claimant.waiter.number);
        self.last_grant += 1;
        let grant = self.last_grant;
        let Waiter {
            request, answer, ..
        } = claimant.waiter;
        for id in &ids {
            self.entries
                .entry(Arc::clone(&id.row))
                .or_default()
                .won(grant);
        }
        let expiry: Arc<Deadline> = Arc::clone(&deadline);
        let (sender, lost) = LostSender::with_expiry(self.backend, &request, expiry);
        let renew_at = now + claimant.ttl / 3;
        self.renewals.insert((renew_at, grant));
        self.watch(now + deadline.remaining());
        self.leases.insert(
            grant,
            Lease {
                ids,
                ttl: claimant.ttl,
                hold_at_least: claimant.hold_at_least,
                granted: now,
                deadline: Arc::clone(&deadline),
                lost: sender,
                key: request.first_key().clone(),
                renew_at,
                extended: Vec::new(),
            },
        );
        let guard = LockGuard::arm(TtlHeld {
            backend: self.backend,
            grant,
            keys: Arc::clone(request.keys()),
            token,
            deadline,
            lost,
            keeper,
        });
        // a caller who has gone away drops the guard, whose release comes back as a command
        answer.send(Ok(Some(guard))).ok();
    }
}
