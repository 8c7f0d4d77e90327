//! What to do next about each key.

use std::sync::Arc;

use sqlock_core::{AdvisoryId, Error, LockKey, Mode};
use sqlock_postgres::LOCK_MEMORY_SETTING;
use tokio::time::Instant;

use super::{
    Attempt, Table, Work,
    entry::{Entry, ServerLock, Waiter},
};
use crate::batch::{Row, Step, Waiting};

/// More rows in one statement gain nothing, and delay those who come after.
const MAX_ROWS: usize = 1024;

impl Table {
    /// Serves what can be served here, and gathers what must be asked of the server.
    pub(crate) fn next_work(&mut self, now: Instant) -> Work {
        let mut work = Work::default();
        let mut dirty = std::mem::take(&mut self.dirty);
        while let Some(id) = dirty.pop() {
            self.advance(id, now, &mut work);
            if work.batch.rows.len() >= MAX_ROWS {
                break;
            }
        }
        // those that came up meanwhile, and those over the limit
        self.dirty.append(&mut dirty);
        // unlocks first: they make room, and whoever waits for them waits less
        work.batch.rows.sort_by_key(|row| match row.step {
            Step::Unlock(_) | Step::LookForWaiter | Step::LookForWriter | Step::StopWaiting(_) => 0,
            Step::Try(_) | Step::TryAsWaiter { .. } => 1,
        });
        work
    }

    fn advance(&mut self, id: AdvisoryId, now: Instant, work: &mut Work) {
        let Some(mut entry) = self.entries.remove(&id) else {
            return;
        };
        entry.dirty = false;
        if !entry.in_batch
            && let Some(step) = self.decide(id, &mut entry, now, work)
        {
            entry.in_batch = true;
            work.push(Row { id, step });
        }
        if !entry.is_idle() {
            self.entries.insert(id, entry);
        }
    }

    fn decide(
        &mut self,
        id: AdvisoryId,
        entry: &mut Entry,
        now: Instant,
        work: &mut Work,
    ) -> Option<Step> {
        if let Some(lock) = entry.held
            && lock.holders == 0
            && let Some(step) = self.pass_on(entry, lock, now)
        {
            return Some(step);
        }
        match entry.held {
            Some(_) => self.let_join(id, entry, now),
            None => self.pursue(id, entry, now, work),
        }
    }

    /// Nobody here holds it any more: the next one here gets it, unless other sessions wait.
    fn pass_on(&mut self, entry: &mut Entry, lock: ServerLock, now: Instant) -> Option<Step> {
        entry.prune();
        let passes = entry
            .queue
            .front()
            .is_some_and(|next| next.wants_one_key() && next.mode() == lock.mode);
        if !passes {
            return Some(Step::Unlock(lock.mode));
        }
        match self.fresh_look(entry, now) {
            None => return Some(Step::LookForWaiter),
            Some(Finding::OthersWait) => return Some(Step::Unlock(lock.mode)),
            Some(Finding::Quiet) => {}
        }
        entry.receipts.clear();
        if self.hand_to_front(entry, lock.mode) {
            None
        } else {
            Some(Step::Unlock(lock.mode))
        }
    }

    /// It is held here: more readers may join readers, unless a writer waits anywhere.
    fn let_join(&mut self, id: AdvisoryId, entry: &mut Entry, now: Instant) -> Option<Step> {
        loop {
            entry.prune();
            let next = entry.queue.front()?;
            let joins = entry.held.is_some_and(|lock| lock.mode == Mode::Shared)
                && next.mode() == Mode::Shared
                && next.wants_one_key();
            if !joins && !next.waits() {
                refuse_front(entry);
                continue;
            }
            if !joins {
                entry.refuse_tries();
                return None;
            }
            match self.fresh_look(entry, now) {
                None => return Some(Step::LookForWriter),
                Some(Finding::OthersWait) => {
                    entry.refuse_tries();
                    self.sleep(id, now);
                    return None;
                }
                Some(Finding::Quiet) => {}
            }
            if !self.hand_to_front(entry, Mode::Shared) {
                return None;
            }
        }
    }

    /// It is not held here: the first in line asks the server.
    fn pursue(
        &mut self,
        id: AdvisoryId,
        entry: &mut Entry,
        now: Instant,
        work: &mut Work,
    ) -> Option<Step> {
        if entry.stand_back.is_some_and(|until| until > now) {
            return None;
        }
        entry.stand_back = None;
        loop {
            entry.prune();
            let Some(next) = entry.queue.front() else {
                entry.refused = false;
                self.sleeping.remove(&id);
                return entry
                    .waiting
                    .any()
                    .then_some(Step::StopWaiting(entry.waiting));
            };
            if entry.asleep {
                entry.refuse_tries();
                self.sleep(id, now);
                return None;
            }
            if entry.waiting.gate && next.mode() == Mode::Shared {
                let gate = Waiting {
                    slot: false,
                    gate: true,
                };
                return Some(Step::StopWaiting(gate));
            }
            let step = if entry.refused && next.waits() {
                Step::TryAsWaiter {
                    mode: next.mode(),
                    waiting: entry.waiting,
                }
            } else {
                Step::Try(next.mode())
            };
            let adds = locks_added(step) + next.request.keys().len() - 1;
            if self.in_use + work.may_add + adds > self.budget {
                self.refuse_for_budget(entry);
                continue;
            }
            if next.wants_one_key() {
                work.may_add += adds;
                return Some(step);
            }
            let Some(waiter) = entry.queue.pop_front() else {
                return None;
            };
            match self.attempt(id, waiter, now, work) {
                Attempted::Asked => {
                    work.may_add += adds;
                    return Some(step);
                }
                Attempted::Elsewhere => {}
                Attempted::Later(waiter) => {
                    entry.enqueue(waiter);
                    return None;
                }
            }
        }
    }

    /// Asks for the other keys of a request as well, unless one of them cannot be had now.
    fn attempt(
        &mut self,
        home: AdvisoryId,
        waiter: Waiter,
        now: Instant,
        work: &mut Work,
    ) -> Attempted {
        let mut tried = vec![home];
        let keys = Arc::clone(waiter.request.keys());
        for id in keys.iter().map(LockKey::id).filter(|id| *id != home) {
            match self.availability(id, waiter.mode(), now) {
                Availability::Unknown => tried.push(id),
                Availability::Joins => {}
                Availability::Soon => {
                    // the completion of the statement under way looks at this one again
                    self.again.push(home);
                    return Attempted::Later(waiter);
                }
                Availability::Held if !waiter.waits() => {
                    waiter.refuse();
                    return Attempted::Elsewhere;
                }
                Availability::Held | Availability::InLine => {
                    self.enqueue(id, waiter);
                    return Attempted::Elsewhere;
                }
            }
        }
        for id in tried.iter().filter(|id| **id != home) {
            self.entries.entry(*id).or_default().in_batch = true;
            work.push(Row {
                id: *id,
                step: Step::Try(waiter.mode()),
            });
        }
        work.attempts.push(Attempt {
            waiter,
            home,
            tried,
        });
        Attempted::Asked
    }

    fn availability(&self, id: AdvisoryId, mode: Mode, now: Instant) -> Availability {
        let Some(entry) = self.entries.get(&id) else {
            return Availability::Unknown;
        };
        let stands_back = entry.stand_back.is_some_and(|until| until > now);
        match entry.held {
            _ if entry.in_batch => Availability::Soon,
            Some(lock) if lock.holders == 0 => Availability::InLine,
            Some(lock) if lock.mode == Mode::Shared && mode == Mode::Shared => Availability::Joins,
            Some(_) => Availability::Held,
            None if stands_back => Availability::InLine,
            None if entry.asleep => Availability::Held,
            None => Availability::Unknown,
        }
    }

    /// The lock goes to the one in front.
    pub(super) fn hand_to_front(&mut self, entry: &mut Entry, mode: Mode) -> bool {
        let Some(waiter) = entry.queue.pop_front() else {
            return false;
        };
        let granted = self.grant(waiter);
        let holders = entry.held.map_or(0, |lock| lock.holders);
        entry.held = Some(ServerLock {
            mode,
            holders: holders + u32::from(granted),
        });
        granted
    }

    fn fresh_look(&self, entry: &Entry, now: Instant) -> Option<Finding> {
        let look = entry.look?;
        (now.saturating_duration_since(look.at) < self.timing.look_again).then_some(if look.quiet {
            Finding::Quiet
        } else {
            Finding::OthersWait
        })
    }

    fn refuse_for_budget(&self, entry: &mut Entry) {
        if let Some(waiter) = entry.queue.pop_front() {
            let refusal = Err(Error::LockBudget {
                in_use: self.in_use,
                budget: self.budget,
                setting: LOCK_MEMORY_SETTING,
            });
            waiter.answer.send(refusal).ok();
        }
    }
}

/// Whether one of several keys can be had.
enum Availability {
    /// The server must be asked.
    Unknown,
    /// Held here, in shared mode, and so can this be.
    Joins,
    /// The statement under way tells.
    Soon,
    /// It comes free in a moment, for the first in its line.
    InLine,
    /// Held, here or elsewhere.
    Held,
}

enum Finding {
    Quiet,
    OthersWait,
}

enum Attempted {
    /// Its keys are in the statement.
    Asked,
    /// It was refused, or is in the queue of the key that it must wait for.
    Elsewhere,
    /// It must stay where it is.
    Later(Waiter),
}

fn refuse_front(entry: &mut Entry) {
    if let Some(waiter) = entry.queue.pop_front() {
        waiter.refuse();
    }
}

/// Locks that a step may add on the server, those included that end with its statement.
fn locks_added(step: Step) -> usize {
    let gate_look = |mode| usize::from(mode == Mode::Shared);
    match step {
        Step::Try(mode) => 1 + gate_look(mode),
        Step::TryAsWaiter { mode, waiting } => {
            let gate = usize::from(mode != Mode::Shared && !waiting.gate);
            1 + gate_look(mode) + usize::from(!waiting.slot) + gate
        }
        _ => 0,
    }
}
