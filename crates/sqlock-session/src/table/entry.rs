use std::{collections::VecDeque, sync::Arc, time::Duration};

use sqlock_core::{FencingToken, Mode, Request};
use tokio::time::Instant;

use crate::{
    batch::Waiting,
    command::{Answer, Asked, Receipt},
    statement::Fenced,
};

/// One key, as far as this process is concerned with it.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// What the session holds on the server.
    pub(crate) held: Option<ServerLock>,
    /// Who in this process wants the key, in order of arrival.
    pub(crate) queue: VecDeque<Waiter>,
    /// What the session holds on the server in order to wait.
    pub(crate) waiting: Waiting,
    /// The server has refused the one in front: it waits as the design says.
    pub(crate) refused: bool,
    /// Nothing is to be done before a notification, a poll or a new one in front.
    pub(crate) asleep: bool,
    /// Times in a row that the wait slot was refused.
    pub(crate) slot_misses: u32,
    /// When the server was last asked whether others wait, and what it said.
    pub(crate) look: Option<Look>,
    /// Others wait: this process leaves the key alone until then.
    pub(crate) stand_back: Option<Instant>,
    /// A row of the statement under way is about this key.
    pub(crate) in_batch: bool,
    /// Listed among those that need attention.
    pub(crate) dirty: bool,
    /// Told when the key is free.
    pub(crate) receipts: Vec<Arc<Receipt>>,
}

/// A lock that the session holds, by how many grants of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerLock {
    pub(crate) mode: Mode,
    pub(crate) holders: u32,
    pub(crate) token: Option<Token>,
}

/// Drawn since the session has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) value: FencingToken,
    /// A holder has it, or had it.
    pub(crate) is_used: bool,
}

impl ServerLock {
    /// Held by nobody of this process yet.
    pub(crate) fn new(mode: Mode, token: Option<FencingToken>) -> Self {
        let mut lock = Self {
            mode,
            holders: 0,
            token: None,
        };
        lock.drew(token);
        lock
    }

    pub(crate) fn drew(&mut self, token: Option<FencingToken>) {
        if let Some(value) = token {
            self.token = Some(Token {
                value,
                is_used: false,
            });
        }
    }

    /// Whether one more holder can have a token. Those who share a lock may share it too: no exclusive
    /// holder comes between them.
    pub(crate) fn has_token(&self, fenced: Fenced) -> bool {
        match (fenced, self.token) {
            (Fenced::No, _) => true,
            (Fenced::Yes, None) => false,
            (Fenced::Yes, Some(token)) => self.mode == Mode::Shared || !token.is_used,
        }
    }

    pub(crate) fn use_token(&mut self) -> Option<FencingToken> {
        let token = self.token.as_mut()?;
        token.is_used = true;
        Some(token.value)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) at: Instant,
    pub(crate) found: Finding,
    /// It counts for what is decided next, however long that takes.
    pub(crate) is_new: bool,
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// No other session waits.
    Quiet,
    /// No other session's writer waits; a reader may.
    NoWriter,
    OthersWait,
    WriterWaits,
}

/// A request in the queue of a key: of its only key, or of the one that it was refused.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) number: u64,
    pub(crate) request: Request,
    pub(crate) answer: Answer,
    pub(crate) patience: Patience,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Try,
    Wait,
}

impl Waiter {
    pub(crate) fn new(asked: Asked) -> Self {
        let patience = match asked.request.deadline() {
            Some(deadline) if !deadline.has_passed() => Patience::Wait,
            _ => Patience::Try,
        };
        Self {
            number: asked.number,
            request: asked.request,
            answer: asked.answer,
            patience,
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.request.mode()
    }

    pub(crate) fn wants_one_key(&self) -> bool {
        self.request.keys().len() == 1
    }

    pub(crate) fn waits(&self) -> bool {
        self.patience == Patience::Wait
    }

    /// The caller has gone away.
    pub(crate) fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }

    pub(crate) fn refuse(self) {
        self.answer.send(Ok(None)).ok();
    }
}

impl Entry {
    /// Puts `waiter` where its arrival says.
    pub(crate) fn enqueue(&mut self, waiter: Waiter) {
        let place = self
            .queue
            .iter()
            .rposition(|earlier| earlier.number < waiter.number)
            .map_or(0, |place| place + 1);
        if place == 0 {
            self.asleep = false;
        }
        self.queue.insert(place, waiter);
    }

    /// Whether `waiter` came before everybody in the queue.
    pub(crate) fn is_before_all(&self, waiter: &Waiter) -> bool {
        let mut numbers = self.queue.iter().map(|other| other.number);
        numbers.all(|number| waiter.number < number)
    }

    /// Drops those in front whose callers have gone away.
    pub(crate) fn prune(&mut self) {
        while self.queue.front().is_some_and(Waiter::is_gone) {
            self.queue.pop_front();
            self.asleep = false;
        }
    }

    /// Takes out those of whom `pick` says so, and leaves the order of the others.
    pub(crate) fn take_out(&mut self, mut pick: impl FnMut(&Waiter) -> bool) -> Vec<Waiter> {
        let mut taken = Vec::new();
        let mut index = 0;
        while let Some(waiter) = self.queue.get(index) {
            if pick(waiter) {
                taken.extend(self.queue.remove(index));
            } else {
                index += 1;
            }
        }
        taken
    }

    /// Answers those who only tried.
    pub(crate) fn refuse_tries(&mut self) {
        for waiter in self.take_out(|waiter| !waiter.waits()) {
            waiter.refuse();
        }
    }

    /// What the last look found, if it is new or not older than `limit`.
    pub(crate) fn fresh_look(&self, now: Instant, limit: Duration) -> Option<Finding> {
        let look = self.look?;
        let is_fresh = now.saturating_duration_since(look.at) < limit;
        // that somebody waited a while ago is no reason to keep others out
        let lasts = matches!(look.found, Finding::Quiet | Finding::NoWriter);
        (look.is_new || (is_fresh && lasts)).then_some(look.found)
    }

    /// What the server said of others.
    pub(crate) fn saw(&mut self, found: Finding, at: Instant) {
        self.look = Some(Look {
            at,
            found,
            is_new: true,
        });
    }

    /// The key has been looked after: the look is as old as it is.
    pub(crate) fn age_look(&mut self) {
        if let Some(look) = &mut self.look {
            look.is_new = false;
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_none()
            && self.queue.is_empty()
            && !self.waiting.any()
            && !self.in_batch
            && self.stand_back.is_none()
    }

    /// Locks on the server that this key accounts for.
    pub(crate) fn server_locks(&self) -> usize {
        usize::from(self.held.is_some()) + self.waiting.locks()
    }
}
