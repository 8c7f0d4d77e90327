//! What a process does when something breaks, and how it is made to break.

use sqlock_core::{AdvisoryId, Error, LockKey, LossCause};
use tokio::time::Instant;

use super::{
    execution::Execution,
    phase::Phase,
    process::Process,
    rules::Mutant,
    server::{Server, SessionId},
};
use crate::{
    BACKEND,
    table::{Whom, Work},
};

/// A session without a client, and its statement.
pub(super) type Orphan = (SessionId, Execution);

impl Process {
    /// The server has ended the session.
    pub(super) fn lose_session(&mut self, work: Option<Work>, server: &mut Server) {
        self.give_up(&LossCause::ConnectionClosed, work, server);
    }

    pub(super) fn give_up(&mut self, cause: &LossCause, work: Option<Work>, server: &mut Server) {
        if self.rules.mutant != Some(Mutant::UntoldLoss) || work.is_some() {
            self.table.session_lost(work, cause, unavailable);
        }
        if let Some(session) = self.session.take() {
            server.end(session);
        }
        self.forget_session(server);
    }

    /// The server does not answer in time: it goes on with the statement, for nobody.
    pub(super) fn abandon_session(&mut self, server: &mut Server) -> Option<Orphan> {
        if !matches!(self.phase, Phase::Asking(..)) {
            return None;
        }
        let session = self.session.take()?;
        let Phase::Asking(work, execution) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return None;
        };
        let cause = LossCause::Unresponsive;
        self.table.session_lost(Some(work), &cause, unavailable);
        self.forget_session(server);
        Some((session, execution))
    }

    /// An orderly end; another process takes its place.
    pub(super) fn shut_down(&mut self, server: &mut Server) {
        if !matches!(self.phase, Phase::Idle) {
            return;
        }
        let receipts = self.table.shut_down();
        if let Some(session) = self.session.take() {
            server.end(session);
        }
        drop(receipts);
        while let Ok(command) = self.commands.try_recv() {
            self.apply(command);
        }
        *self = Self::new(&self.rules);
    }

    fn forget_session(&mut self, server: &mut Server) {
        self.in_order();
        self.listen(server, false);
        self.wakes.clear();
        self.phase = Phase::Idle;
    }

    pub(super) fn connect(&mut self, server: &mut Server) -> bool {
        if self.outage == 0 {
            self.session = Some(server.open());
            return true;
        }
        self.outage -= 1;
        let whom = if self.outage == 1 {
            Whom::Everybody
        } else {
            Whom::Tries
        };
        self.table.cannot_connect(whom, unavailable);
        false
    }

    /// Orders what a hash table leaves to chance.
    pub(super) fn in_order(&mut self) {
        self.table.dirty.make_contiguous().sort();
    }

    /// Polls at the end of their time.
    pub(super) fn without_jitter(&mut self, now: Instant) {
        let poll = self.table.next_poll.is_some();
        self.poll_at = poll.then(|| self.poll_at.unwrap_or(now + self.rules.timing.poll));
        self.table.next_poll = self.poll_at;
    }

    /// The grant that a release ends where releases name keys: whoever holds the first of them.
    pub(super) fn mistaken(&mut self, grant: u64) -> u64 {
        if let Some(known) = self.table.grants.get(&grant) {
            self.released.insert(grant, known.keys[0].id());
            return grant;
        }
        if self.rules.mutant != Some(Mutant::ReleaseByKey) {
            return grant;
        }
        let key: Option<AdvisoryId> = self.released.get(&grant).copied();
        let mut others = self.table.grants.iter();
        let sibling = others.find(|(_, other)| other.keys.first().map(LockKey::id) == key);
        sibling.map_or(grant, |(number, _)| *number)
    }
}

pub(super) fn unavailable() -> Error {
    Error::Unavailable {
        backend: BACKEND,
        source: "the simulation".into(),
    }
}
