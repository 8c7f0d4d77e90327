//! What the server's answers mean.

use sqlock_core::{AdvisoryId, FencingToken, Mode};
use tokio::time::Instant;

use super::{
    Table, Work,
    entry::{Entry, Finding, ServerLock},
    several::take_part,
};
use crate::batch::{Outcome, Row, Step, Waiting};

/// After so many refusals in a row the wait slot is not asked for again at once: whoever releases
/// holds it for the length of a statement only, so that this is somebody else's doing.
const MAX_SLOT_MISSES: u32 = 20;

/// The server says that a lock was not held which the session had taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotHeld;

impl Table {
    /// Takes in the answers to `work`, in the order of its rows.
    pub(crate) fn complete(
        &mut self,
        work: Work,
        outcomes: &[Outcome],
        now: Instant,
    ) -> Result<(), NotHeld> {
        let mut all_were_held = Ok(());
        let in_attempt = |id: AdvisoryId| work.attempts.iter().any(|a| a.tried.contains(&id));
        for (row, outcome) in work.batch.rows.iter().zip(outcomes) {
            let is_part = !work.attempts.is_empty() && in_attempt(row.id);
            let mut entry = self.entries.remove(&row.id).unwrap_or_default();
            entry.in_batch = false;
            let before = entry.server_locks();
            match row.step {
                Step::Unlock(_) if !outcome.done => all_were_held = Err(NotHeld),
                _ if is_part => take_part(&mut entry, row, outcome),
                _ => self.apply(&mut entry, row, outcome, now),
            }
            self.in_use = self.in_use + entry.server_locks() - before;
            entry.dirty = false;
            self.entries.insert(row.id, entry);
            self.mark(row.id);
        }
        for attempt in work.attempts {
            self.settle(attempt, now);
        }
        self.look_again();
        all_were_held
    }

    fn apply(&mut self, entry: &mut Entry, row: &Row, outcome: &Outcome, now: Instant) {
        match row.step {
            Step::Unlock(_) => {
                entry.held = None;
                entry.receipts.clear();
                entry.saw(found(row.step, outcome), now);
                if !outcome.quiet {
                    self.announcements.push(row.id);
                    self.stand_back(row.id, entry, now);
                    entry.refused = true;
                }
            }
            Step::LookForWaiter | Step::LookForWriter => {
                entry.saw(found(row.step, outcome), now);
                entry.drew(outcome.token);
            }
            Step::StopWaiting(given_back) => {
                entry.waiting.slot &= !given_back.slot;
                entry.waiting.gate &= !given_back.gate;
                if given_back.gate && !outcome.quiet {
                    // readers that found the gate closed
                    self.announcements.push(row.id);
                }
            }
            Step::Try(mode) | Step::TryAsWaiter { mode, .. } if outcome.done => {
                entry.won(row.step, mode, outcome.token);
                self.won(entry, row.id, mode, now);
            }
            Step::Try(mode) => refused(entry, mode),
            Step::TryAsWaiter { mode, .. } => {
                entry.waiting = outcome.waiting;
                refused(entry, mode);
                let is_same = |next: &super::Waiter| next.mode() == mode;
                if entry.queue.front().is_some_and(is_same) {
                    self.rest(row.id, entry, now);
                }
            }
        }
    }

    fn won(&mut self, entry: &mut Entry, id: AdvisoryId, mode: Mode, now: Instant) {
        if mode == Mode::Shared {
            // the gate was open a moment ago: no writer waits
            entry.saw(Finding::NoWriter, now);
        }
        self.sleeping.remove(&id);
        entry.prune();
        let next = entry.queue.front();
        let Some(next) = next.filter(|next| next.mode() == mode) else {
            return;
        };
        if next.wants_one_key() {
            self.hand_to_front(entry, mode);
        } else {
            // had in open contest: kept while it asks for the others
            entry.saw(Finding::Quiet, now);
        }
    }

    /// A waiter that was refused rests, once it has the wait slot.
    pub(super) fn rest(&mut self, id: AdvisoryId, entry: &mut Entry, now: Instant) {
        if entry.waiting.slot {
            entry.slot_misses = 0;
            entry.asleep = true;
            self.sleep(id, now);
        } else {
            entry.slot_misses += 1;
            if entry.slot_misses >= MAX_SLOT_MISSES {
                entry.slot_misses = 0;
                self.stand_back(id, entry, now);
            }
        }
    }
}

fn found(step: Step, outcome: &Outcome) -> Finding {
    match (step, outcome.quiet) {
        (Step::LookForWriter, true) => Finding::NoWriter,
        (Step::LookForWriter, false) => Finding::WriterWaits,
        (_, true) => Finding::Quiet,
        (_, false) => Finding::OthersWait,
    }
}

/// The server refused the key in this mode to the one in front.
fn refused(entry: &mut Entry, mode: Mode) {
    entry.prune();
    let hopeless = entry.take_out(|waiter| !waiter.waits() && waiter.mode() == mode);
    for waiter in hopeless {
        waiter.refuse();
    }
    if entry.queue.front().is_some_and(super::Waiter::waits) {
        entry.refused = true;
        entry.refuse_tries();
    }
}

impl Entry {
    /// The session holds the key now. A waiter has given back what it took to wait.
    pub(super) fn won(&mut self, step: Step, mode: Mode, token: Option<FencingToken>) {
        self.held = Some(ServerLock::new(mode, token));
        if matches!(step, Step::TryAsWaiter { .. }) {
            self.waiting = Waiting::default();
        }
        self.refused = false;
        self.asleep = false;
        self.slot_misses = 0;
    }

    pub(super) fn drew(&mut self, token: Option<FencingToken>) {
        if let Some(lock) = &mut self.held {
            lock.drew(token);
        }
    }
}
