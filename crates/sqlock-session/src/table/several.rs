//! Requests for several keys: all of them in one statement, or none.

use std::sync::Arc;

use sqlock_core::{AdvisoryId, LockKey, Mode};
use tokio::time::Instant;

use super::{
    Attempt, Table, Work,
    advance::locks_added,
    entry::{Entry, Finding, Waiter},
};
use crate::batch::{Outcome, Row, Step};

/// What became of the request in front.
pub(super) enum Asked {
    /// Its keys are in the statement; `step` is for its queue's key.
    Now,
    /// It must stay in front.
    Later,
    /// It was refused, or is in the queue of the key that it must wait for.
    Gone,
}

/// Whether one of several keys can be had.
enum Availability {
    /// The server must be asked.
    Unknown,
    /// Held here, in shared mode, and so can this be.
    Joins,
    /// Likewise, unless a writer waits.
    LookFirst,
    /// The next statement tells, or frees it.
    Soon,
    /// For the first in its line.
    InLine,
    /// Held, here or elsewhere.
    Held,
}

impl Table {
    /// Asks for all keys of the request in front, with `step` for the key in whose queue it is.
    pub(super) fn ask_for_all(
        &mut self,
        home: AdvisoryId,
        entry: &mut Entry,
        step: Step,
        now: Instant,
        work: &mut Work,
    ) -> Asked {
        let Some(waiter) = entry.queue.pop_front() else {
            return Asked::Gone;
        };
        let mut rows = vec![Row { id: home, step }];
        let keys = Arc::clone(waiter.request.keys());
        for id in keys.iter().map(LockKey::id).filter(|id| *id != home) {
            let step = match self.availability(id, &waiter, now) {
                Availability::Joins => continue,
                Availability::Unknown => Step::Try(waiter.mode()),
                Availability::LookFirst => Step::LookForWriter,
                Availability::Soon => {
                    // looked at again when that statement is answered
                    self.again.push(home);
                    entry.enqueue(waiter);
                    return Asked::Later;
                }
                Availability::Held if !waiter.waits() => {
                    waiter.refuse();
                    return Asked::Gone;
                }
                Availability::Held | Availability::InLine => {
                    self.enqueue(id, waiter);
                    return Asked::Gone;
                }
            };
            rows.push(Row { id, step });
        }
        if !self.affords(rows.iter().map(|row| locks_added(row.step)).sum(), work) {
            entry.queue.push_front(waiter);
            self.refuse_for_budget(entry);
            return Asked::Gone;
        }
        self.ask(waiter, rows, work);
        Asked::Now
    }

    /// Whether one of the keys is left alone for a moment.
    pub(super) fn stands_back(&self, waiter: &Waiter, now: Instant) -> bool {
        let mut entries = waiter
            .request
            .keys()
            .iter()
            .map(|key| self.entries.get(&key.id()));
        entries.any(|entry| {
            entry
                .and_then(|entry| entry.stand_back)
                .is_some_and(|until| until > now)
        })
    }

    /// The first of the rows is returned to whoever looks after the queue.
    fn ask(&mut self, waiter: Waiter, rows: Vec<Row>, work: &mut Work) {
        let Some(first) = rows.first().copied() else {
            return;
        };
        let ids = |pick: fn(Step) -> bool| {
            let picked = rows.iter().filter(|row| pick(row.step));
            picked.map(|row| row.id).collect()
        };
        work.attempts.push(Attempt {
            waiter,
            home: first.id,
            as_waiter: matches!(first.step, Step::TryAsWaiter { .. }),
            tried: ids(|step| matches!(step, Step::Try(_) | Step::TryAsWaiter { .. })),
            looked_at: ids(|step| step == Step::LookForWriter),
        });
        for row in rows.into_iter().skip(1) {
            self.entries.entry(row.id).or_default().in_batch = true;
            work.push(row);
        }
    }

    fn availability(&self, id: AdvisoryId, waiter: &Waiter, now: Instant) -> Availability {
        let Some(entry) = self.entries.get(&id) else {
            return Availability::Unknown;
        };
        let stands_back = entry.stand_back.is_some_and(|until| until > now);
        match entry.held {
            _ if entry.in_batch => Availability::Soon,
            Some(lock) if lock.holders == 0 => Availability::Soon,
            Some(lock) if lock.mode == Mode::Shared && waiter.mode() == Mode::Shared => {
                self.may_join(entry, waiter, now)
            }
            Some(_) => Availability::Held,
            None if stands_back => Availability::InLine,
            // refused to those who came before
            None if entry.asleep && !entry.is_before_all(waiter) => Availability::Held,
            None => Availability::Unknown,
        }
    }

    /// Held here in shared mode: those in line come first, and writers of other sessions.
    fn may_join(&self, entry: &Entry, waiter: &Waiter, now: Instant) -> Availability {
        if !entry.is_before_all(waiter) {
            return Availability::InLine;
        }
        match entry.fresh_look(now, self.timing.look_again) {
            Some(Finding::Quiet | Finding::NoWriter) => Availability::Joins,
            Some(Finding::WriterWaits) => Availability::Held,
            _ => Availability::LookFirst,
        }
    }

    /// All of the keys, or none: what was had is given up again.
    pub(super) fn settle(&mut self, attempt: Attempt, now: Instant) {
        let missing = self.missing(&attempt);
        let Attempt {
            waiter,
            home,
            as_waiter,
            ..
        } = attempt;
        if waiter.is_gone() {
            return;
        }
        if let Some(missing) = missing {
            if !waiter.waits() {
                return waiter.refuse();
            }
            let rests = as_waiter && missing == home;
            return self.wait_for(missing, waiter, rests, now);
        }
        let keys = Arc::clone(waiter.request.keys());
        // all of them were drawn since the last holder of any of the keys
        let held = keys.iter().filter_map(|key| {
            let lock = self.entries.get_mut(&key.id())?.held.as_mut()?;
            lock.use_token()
        });
        let token = held.max();
        if !self.grant(waiter, token) {
            return;
        }
        for id in keys.iter().map(LockKey::id) {
            if let Some(entry) = self.entries.get_mut(&id)
                && let Some(lock) = &mut entry.held
            {
                lock.holders += 1;
                // passed on
                entry.receipts.clear();
            }
        }
    }

    fn missing(&self, attempt: &Attempt) -> Option<AdvisoryId> {
        let is_free = |id: &AdvisoryId| self.entries.get(id).is_none_or(|e| e.held.is_none());
        let is_awaited = |id: &AdvisoryId| {
            let look = self.entries.get(id).and_then(|entry| entry.look);
            look.is_none_or(|look| look.found == Finding::WriterWaits)
        };
        let mut free = attempt.tried.iter().filter(|id| is_free(id));
        let mut awaited = attempt.looked_at.iter().filter(|id| is_awaited(id));
        free.next().or_else(|| awaited.next()).copied()
    }

    /// It goes on in the queue of the key that it could not have.
    fn wait_for(&mut self, key: AdvisoryId, waiter: Waiter, rests: bool, now: Instant) {
        let mut entry = self.entries.remove(&key).unwrap_or_default();
        let number = waiter.number;
        entry.enqueue(waiter);
        entry.refused = true;
        let is_first = entry
            .queue
            .front()
            .is_some_and(|next| next.number == number);
        if rests && is_first {
            self.rest(key, &mut entry, now);
        }
        self.entries.insert(key, entry);
        self.mark(key);
    }
}

/// A key of several: what comes of it is known when all are.
pub(super) fn take_part(entry: &mut Entry, row: &Row, outcome: &Outcome) {
    match row.step {
        Step::Try(mode) | Step::TryAsWaiter { mode, .. } if outcome.done => {
            entry.won(row.step, mode, outcome.token);
        }
        Step::TryAsWaiter { .. } => entry.waiting = outcome.waiting,
        Step::LookForWaiter | Step::LookForWriter => entry.drew(outcome.token),
        _ => {}
    }
}
