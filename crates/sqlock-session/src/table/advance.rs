//! What to do next about each key.

use sqlock_core::{AdvisoryId, Error, Mode};
use sqlock_postgres::LOCK_MEMORY_SETTING;
use tokio::time::Instant;

use super::{
    Table, Work,
    entry::{Entry, Finding, ServerLock},
    several::Asked,
};
use crate::batch::{Row, Step, Waiting};

/// More rows in one statement gain nothing, and delay those who come after.
const MAX_ROWS: usize = 1024;

impl Table {
    /// Serves what can be served here, and gathers what must be asked of the server.
    pub(crate) fn next_work(&mut self, now: Instant) -> Work {
        let mut work = Work::default();
        // those that come up meanwhile are for the next time
        for _ in 0..self.dirty.len() {
            if work.batch.rows.len() >= MAX_ROWS {
                break;
            }
            if let Some(id) = self.dirty.pop_front() {
                self.advance(id, now, &mut work);
            }
        }
        if work.batch.rows.is_empty() {
            self.look_again();
        }
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
        if !entry.in_batch {
            if let Some(step) = self.decide(id, &mut entry, now, work) {
                entry.in_batch = true;
                work.push(Row { id, step });
            }
            entry.age_look();
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
        let Some(lock) = entry.held else {
            return self.pursue(id, entry, now, work);
        };
        if lock.holders == 0
            && let Some(step) = self.pass_on(id, entry, lock, now, work)
        {
            return Some(step);
        }
        if entry.waiting.any() {
            // had by a plain try, which gives nothing back
            return Some(Step::StopWaiting(entry.waiting));
        }
        self.let_join(id, entry, now, work)
    }

    /// Nobody here holds it any more: the next one here gets it, unless other sessions wait.
    fn pass_on(
        &mut self,
        id: AdvisoryId,
        entry: &mut Entry,
        lock: ServerLock,
        now: Instant,
        work: &mut Work,
    ) -> Option<Step> {
        loop {
            entry.prune();
            let next = entry.queue.front();
            let Some(next) = next.filter(|next| next.mode() == lock.mode) else {
                return Some(Step::Unlock(lock.mode));
            };
            let wants_one_key = next.wants_one_key();
            match entry.fresh_look(now, self.timing.look_again) {
                Some(Finding::Quiet) if wants_one_key && lock.has_token(self.fenced) => break,
                Some(Finding::Quiet) if !wants_one_key => {}
                // where the last holder has the token, the look draws another
                None | Some(Finding::Quiet | Finding::NoWriter) if self.affords(1, work) => {
                    return Some(Step::LookForWaiter);
                }
                _ => return Some(Step::Unlock(lock.mode)),
            }
            // it keeps this one while it asks for the others
            match self.ask_for_all(id, entry, Step::LookForWaiter, now, work) {
                Asked::Now => return Some(Step::LookForWaiter),
                // two that keep what the other wants would wait for each other
                Asked::Later => return Some(Step::Unlock(lock.mode)),
                Asked::Gone => {}
            }
        }
        entry.receipts.clear();
        if self.hand_to_front(entry, lock.mode) {
            None
        } else {
            Some(Step::Unlock(lock.mode))
        }
    }

    /// It is held here: more readers may join readers, unless a writer waits anywhere.
    fn let_join(
        &mut self,
        id: AdvisoryId,
        entry: &mut Entry,
        now: Instant,
        work: &mut Work,
    ) -> Option<Step> {
        loop {
            entry.prune();
            let next = entry.queue.front()?;
            let joins = entry.held.is_some_and(|lock| lock.mode == Mode::Shared)
                && next.mode() == Mode::Shared;
            if !joins && !next.waits() {
                refuse_front(entry);
                continue;
            }
            if !joins {
                entry.refuse_tries();
                return None;
            }
            let wants_one_key = next.wants_one_key();
            match entry.fresh_look(now, self.timing.look_again) {
                Some(Finding::WriterWaits) => {
                    entry.refuse_tries();
                    self.sleep(id, now);
                    return None;
                }
                _ if !wants_one_key => {
                    match self.ask_for_all(id, entry, Step::LookForWriter, now, work) {
                        Asked::Now => return Some(Step::LookForWriter),
                        Asked::Later => return None,
                        Asked::Gone => continue,
                    }
                }
                Some(Finding::Quiet | Finding::NoWriter) => {}
                _ if self.affords(1, work) => return Some(Step::LookForWriter),
                _ => {
                    self.refuse_for_budget(entry);
                    continue;
                }
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
            let as_waiter = entry.refused && next.waits();
            let step = if as_waiter {
                Step::TryAsWaiter {
                    mode: next.mode(),
                    waiting: entry.waiting,
                }
            } else {
                Step::Try(next.mode())
            };
            // whoever begins to wait does so where it was refused, and leaves the others alone
            let begins = as_waiter && (!entry.waiting.slot || self.stands_back(next, now));
            if !next.wants_one_key() && !begins {
                match self.ask_for_all(id, entry, step, now, work) {
                    Asked::Now => return Some(step),
                    Asked::Later => return None,
                    Asked::Gone => continue,
                }
            }
            if self.affords(locks_added(step), work) {
                return Some(step);
            }
            self.refuse_for_budget(entry);
        }
    }

    /// The lock goes to the one in front.
    pub(super) fn hand_to_front(&mut self, entry: &mut Entry, mode: Mode) -> bool {
        let Some(waiter) = entry.queue.pop_front() else {
            return false;
        };
        let lock = entry.held.get_or_insert(ServerLock::new(mode, None));
        let granted = self.grant(waiter, lock.use_token());
        lock.mode = mode;
        lock.holders += u32::from(granted);
        granted
    }

    /// Counts what a row may add on the server, if there is room for it.
    pub(super) fn affords(&self, locks: usize, work: &mut Work) -> bool {
        let has_room = self.in_use + work.may_add + locks <= self.budget;
        if has_room {
            work.may_add += locks;
        }
        has_room
    }

    pub(super) fn refuse_for_budget(&self, entry: &mut Entry) {
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

fn refuse_front(entry: &mut Entry) {
    if let Some(waiter) = entry.queue.pop_front() {
        waiter.refuse();
    }
}

/// Locks that a step may add on the server, those included that end with its statement. (An unlock
/// makes room for its look.)
pub(super) fn locks_added(step: Step) -> usize {
    let gate_look = |mode| usize::from(mode == Mode::Shared);
    match step {
        Step::Try(mode) => 1 + gate_look(mode),
        Step::TryAsWaiter { mode, waiting } => {
            let gate = usize::from(mode != Mode::Shared && !waiting.gate);
            1 + gate_look(mode) + usize::from(!waiting.slot) + gate
        }
        Step::LookForWaiter | Step::LookForWriter => 1,
        Step::Unlock(_) | Step::StopWaiting(_) => 0,
    }
}
