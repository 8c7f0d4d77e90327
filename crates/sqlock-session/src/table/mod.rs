//! Who in this process holds and wants which key, and what to ask of the server about it.
//!
//! Nothing here does I/O: the owner task feeds it commands and answers, and sends what it asks.
//! The session's advisory locks re-enter, so that it is this table that keeps the tasks of one
//! process apart. Its rule: the session holds a key at most once on the server.

mod advance;
mod complete;
mod entry;
mod loss;
mod several;
#[cfg(test)]
mod sim;
mod timers;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use sqlock_core::{AdvisoryId, Error, FencingToken, LockGuard, LockKey, LostSender, Request};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    BACKEND, SessionHeld,
    batch::{Batch, Row},
    command::{Asked, Command, Receipt},
    options::Timing,
    statement::Fenced,
};
use entry::{Entry, Waiter};
pub(crate) use loss::Whom;

#[derive(Debug)]
pub(crate) struct Table {
    /// Weak, or the owner would keep itself alive.
    owner: mpsc::WeakUnboundedSender<Command>,
    timing: Timing,
    fenced: Fenced,
    budget: usize,
    entries: HashMap<AdvisoryId, Entry>,
    grants: HashMap<u64, Grant>,
    next_grant: u64,
    /// Locks that the session has on the server, those of waiting included.
    in_use: usize,
    /// Keys that need attention.
    dirty: VecDeque<AdvisoryId>,
    /// Keys whose waiters look again at the next poll.
    sleeping: HashSet<AdvisoryId>,
    next_poll: Option<Instant>,
    /// Keys that are left alone for a moment, the earliest first.
    standing_back: VecDeque<(Instant, AdvisoryId)>,
    /// Keys to look at again when the next statement is answered.
    again: Vec<AdvisoryId>,
    /// Keys whose waiters in other sessions are to be told.
    announcements: Vec<AdvisoryId>,
    is_shut_down: bool,
}

#[derive(Debug)]
struct Grant {
    keys: Arc<[LockKey]>,
    lost: LostSender,
}

/// A request for several keys, all of which the statement under way tries.
#[derive(Debug)]
pub(crate) struct Attempt {
    waiter: Waiter,
    /// The key in whose queue it was.
    home: AdvisoryId,
    /// It asks for that one as a waiter.
    as_waiter: bool,
    /// The keys that are asked of the server; the others are joined.
    tried: Vec<AdvisoryId>,
    /// Those to be joined unless a writer waits for them, which the statement tells.
    looked_at: Vec<AdvisoryId>,
}

impl Attempt {
    fn is_about(&self, id: AdvisoryId) -> bool {
        self.tried.contains(&id) || self.looked_at.contains(&id)
    }
}

/// A statement's rows, and the requests for several keys among them.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) batch: Batch,
    attempts: Vec<Attempt>,
    /// Locks that the rows may add on the server.
    may_add: usize,
}

impl Table {
    pub(crate) fn new(
        owner: mpsc::WeakUnboundedSender<Command>,
        timing: Timing,
        fenced: Fenced,
    ) -> Self {
        Self {
            owner,
            timing,
            fenced,
            budget: usize::MAX,
            entries: HashMap::new(),
            grants: HashMap::new(),
            next_grant: 0,
            in_use: 0,
            dirty: VecDeque::new(),
            sleeping: HashSet::new(),
            next_poll: None,
            standing_back: VecDeque::new(),
            again: Vec::new(),
            announcements: Vec::new(),
            is_shut_down: false,
        }
    }

    pub(crate) fn set_budget(&mut self, budget: usize) {
        self.budget = budget;
    }

    pub(crate) fn acquire(&mut self, asked: Asked) {
        if self.is_shut_down {
            let refusal = Err(Error::ShutDown { backend: BACKEND });
            asked.answer.send(refusal).ok();
            return;
        }
        let id = asked.request.first_key().id();
        self.enqueue(id, Waiter::new(asked));
    }

    pub(crate) fn forget(&mut self, number: u64, request: &Request) {
        for id in request.keys().iter().map(LockKey::id) {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            let was_first = entry
                .queue
                .front()
                .is_some_and(|next| next.number == number);
            if !entry.take_out(|waiter| waiter.number == number).is_empty() {
                entry.asleep &= !was_first;
                self.mark(id);
            }
        }
    }

    pub(crate) fn release(&mut self, grant: u64, receipt: Option<&Arc<Receipt>>) {
        let Some(Grant { keys, lost }) = self.grants.remove(&grant) else {
            return;
        };
        lost.released();
        for id in keys.iter().map(LockKey::id) {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            let Some(lock) = &mut entry.held else {
                continue;
            };
            lock.holders -= 1;
            if lock.holders == 0 {
                entry.receipts.extend(receipt.map(Arc::clone));
                self.mark(id);
            }
        }
    }

    /// Another session has released the key.
    pub(crate) fn wake(&mut self, id: AdvisoryId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !entry.queue.is_empty()
        {
            entry.asleep = false;
            self.mark(id);
        }
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.dirty.is_empty()
    }

    pub(crate) fn holds_any(&self) -> bool {
        !self.grants.is_empty()
    }

    /// Whether notifications are of use.
    pub(crate) fn waits_for_others(&self) -> bool {
        !self.sleeping.is_empty()
    }

    pub(crate) fn take_announcements(&mut self) -> Vec<AdvisoryId> {
        std::mem::take(&mut self.announcements)
    }

    fn enqueue(&mut self, id: AdvisoryId, waiter: Waiter) {
        self.entries.entry(id).or_default().enqueue(waiter);
        self.mark(id);
    }

    fn mark(&mut self, id: AdvisoryId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !entry.dirty
        {
            entry.dirty = true;
            self.dirty.push_back(id);
        }
    }

    fn look_again(&mut self) {
        for id in std::mem::take(&mut self.again) {
            self.mark(id);
        }
    }

    /// Answers `waiter` with a guard. `false` where all handles are gone, and with them the use of
    /// a lock. A caller who has gone away drops the guard, whose release comes back as a command.
    fn grant(&mut self, waiter: Waiter, token: Option<FencingToken>) -> bool {
        let Some(owner) = self.owner.upgrade() else {
            return false;
        };
        let (sender, lost) = LostSender::new(BACKEND, &waiter.request);
        let keys = Arc::clone(waiter.request.keys());
        self.next_grant += 1;
        self.grants.insert(
            self.next_grant,
            Grant {
                keys: Arc::clone(&keys),
                lost: sender,
            },
        );
        let guard = LockGuard::arm(SessionHeld {
            grant: self.next_grant,
            keys,
            lost,
            token,
            owner,
        });
        waiter.answer.send(Ok(Some(guard))).ok();
        true
    }
}

impl Work {
    fn push(&mut self, row: Row) {
        self.batch.rows.push(row);
    }
}
