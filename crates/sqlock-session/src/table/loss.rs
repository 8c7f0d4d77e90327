//! What is left when a session ends, a statement fails or the backend is shut down.

use std::{collections::HashSet, sync::Arc};

use sqlock_core::{AdvisoryId, Error, LossCause, Mode};
use tokio::time::Instant;

use super::{
    Table, Work,
    entry::{Entry, Finding, ServerLock, Waiter},
};
use crate::{
    BACKEND,
    batch::{Row, Step},
    command::Receipt,
    server_lock::{HeldOnServer, OnServer},
};

/// Locks that were thought to be held are not there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LocksMissing;

impl Table {
    /// The session is over, and with it all that it held. Those who wait go on to the next one.
    /// Those who only tried, and whose answer was under way, are told: what became of their try is
    /// not known.
    pub(crate) fn session_lost(
        &mut self,
        work: Option<Work>,
        cause: &LossCause,
        error: impl Fn() -> Error,
    ) {
        for (_, grant) in self.grants.drain() {
            grant.lost.lose(cause.clone());
        }
        self.forget_timers();
        let mut queued = Vec::new();
        for (id, mut entry) in self.entries.drain() {
            for receipt in entry.receipts.drain(..) {
                receipt.lose(cause);
            }
            if entry.in_batch
                && let Some(waiter) = entry.take_front_if(|next| !next.waits())
            {
                waiter.answer.send(Err(error())).ok();
            }
            queued.extend(entry.queue.into_iter().map(|waiter| (id, waiter)));
        }
        for attempt in work.into_iter().flat_map(|work| work.attempts) {
            if attempt.waiter.waits() {
                queued.push((attempt.home, attempt.waiter));
            } else {
                attempt.waiter.answer.send(Err(error())).ok();
            }
        }
        for (id, waiter) in queued {
            self.enqueue(id, waiter);
        }
    }

    /// No new session can be had. Those who only tried are told; those who wait too, where
    /// `everybody` is asked for.
    pub(crate) fn cannot_connect(&mut self, whom: Whom, error: impl Fn() -> Error) {
        for entry in self.entries.values_mut() {
            for waiter in entry.take_out(|waiter| whom == Whom::Everybody || !waiter.waits()) {
                waiter.answer.send(Err(error())).ok();
            }
        }
        self.entries.retain(|_, entry| !entry.is_idle());
        let entries = &self.entries;
        self.dirty.retain(|id| entries.contains_key(id));
    }

    /// The statement failed and the session goes on. What it had done before it failed is done, so
    /// `on_server`, what the session holds by the server's own word, decides.
    pub(crate) fn recover(
        &mut self,
        work: Work,
        on_server: &HashSet<HeldOnServer>,
        now: Instant,
        error: impl Fn() -> Error,
    ) -> Result<(), LocksMissing> {
        for row in &work.batch.rows {
            let mut entry = self.entries.remove(&row.id).unwrap_or_default();
            entry.in_batch = false;
            let before = entry.server_locks();
            let is_part = work.attempts.iter().any(|attempt| attempt.is_about(row.id));
            let had_gate = entry.waiting.gate;
            correct(&mut entry, row, on_server, now);
            if had_gate && !entry.waiting.gate {
                // readers that found the gate closed
                self.announcements.push(row.id);
            }
            if matches!(row.step, Step::Unlock(_)) && entry.held.is_none() {
                entry.receipts.clear();
                self.announcements.push(row.id);
            }
            let asked = !matches!(
                row.step,
                Step::Unlock(_) | Step::LookForWaiter | Step::StopWaiting(_)
            );
            if asked
                && !is_part
                && let Some(waiter) = entry.take_front_if(|_| true)
            {
                waiter.answer.send(Err(error())).ok();
            }
            self.in_use = self.in_use + entry.server_locks() - before;
            entry.dirty = false;
            self.entries.insert(row.id, entry);
            self.mark(row.id);
        }
        for attempt in work.attempts {
            attempt.waiter.answer.send(Err(error())).ok();
        }
        self.look_again();
        let all_there = self.entries.iter().all(|(id, entry)| {
            entry
                .held
                .is_none_or(|lock| on_server.contains(&HeldOnServer::Key(*id, lock.mode)))
        });
        if all_there { Ok(()) } else { Err(LocksMissing) }
    }

    /// Everybody is told, and no request is taken any more. The receipts are for those whose
    /// locks are on their way to be freed: to be dropped when they are.
    pub(crate) fn shut_down(&mut self) -> Vec<Arc<Receipt>> {
        self.is_shut_down = true;
        for (_, grant) in self.grants.drain() {
            grant.lost.lose(LossCause::ShutDown);
        }
        let mut receipts = Vec::new();
        for (_, entry) in self.entries.drain() {
            receipts.extend(entry.receipts);
            for waiter in entry.queue {
                let refusal = Err(Error::ShutDown { backend: BACKEND });
                waiter.answer.send(refusal).ok();
            }
        }
        self.forget_timers();
        receipts
    }

    fn forget_timers(&mut self) {
        self.in_use = 0;
        self.dirty.clear();
        self.again.clear();
        self.sleeping.clear();
        self.standing_back.clear();
        self.announcements.clear();
        self.next_poll = None;
    }
}

/// Who is told that there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    Tries,
    Everybody,
}

impl Entry {
    fn take_front_if(&mut self, pick: impl Fn(&Waiter) -> bool) -> Option<Waiter> {
        if self.queue.front().is_some_and(pick) {
            self.queue.pop_front()
        } else {
            None
        }
    }
}

/// What the session holds of this key after a statement that failed.
fn correct(entry: &mut Entry, row: &Row, on_server: &HashSet<HeldOnServer>, now: Instant) {
    let holds = |id: AdvisoryId, mode: Mode| on_server.contains(&HeldOnServer::Key(id, mode));
    match row.step {
        Step::Unlock(mode) => {
            if !holds(row.id, mode) {
                entry.held = None;
            }
        }
        Step::LookForWaiter => {
            // not known: as if somebody waited, which leads to an unlock and not to another look
            entry.saw(Finding::OthersWait, now);
        }
        Step::LookForWriter => entry.look = None,
        Step::Try(mode) | Step::TryAsWaiter { mode, .. } => {
            entry.held = holds(row.id, mode).then(|| ServerLock::new(mode, None));
        }
        Step::StopWaiting(_) => {}
    }
    if matches!(row.step, Step::TryAsWaiter { .. } | Step::StopWaiting(_)) {
        entry.waiting.slot = on_server.contains(&HeldOnServer::Slot(row.id.slot()));
        entry.waiting.gate = on_server.contains(&HeldOnServer::Gate(row.id.slot()));
    }
}
