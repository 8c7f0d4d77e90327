//! The server: who holds which advisory lock, and who listens.

use std::collections::{BTreeMap, VecDeque};

use sqlock_core::{AdvisoryId, FencingToken, Mode};

use super::rules::Mutant;

pub(super) type SessionId = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tag {
    Key(AdvisoryId),
    Slot(i32),
    Gate(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Session,
    Transaction,
}

/// How often a session holds a lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) exclusive: u32,
    pub(super) shared: u32,
    /// Until the end of the statement.
    exclusive_now: u32,
    shared_now: u32,
}

impl Hold {
    fn count(&mut self, mode: Mode, level: Level) -> &mut u32 {
        match (mode, level) {
            (Mode::Shared, Level::Session) => &mut self.shared,
            (Mode::Shared, Level::Transaction) => &mut self.shared_now,
            (_, Level::Session) => &mut self.exclusive,
            (_, Level::Transaction) => &mut self.exclusive_now,
        }
    }

    fn excludes(&self, mode: Mode) -> bool {
        let exclusive = self.exclusive + self.exclusive_now;
        exclusive > 0 || (mode == Mode::Exclusive && self.shared + self.shared_now > 0)
    }
}

#[derive(Debug, Default)]
struct Backend {
    listens: bool,
    notifications: VecDeque<AdvisoryId>,
}

#[derive(Debug, Default)]
pub(super) struct Server {
    holds: BTreeMap<(Tag, SessionId), Hold>,
    sessions: BTreeMap<SessionId, Backend>,
    opened: SessionId,
    tries: usize,
    drawn: i64,
    mutant: Option<Mutant>,
}

impl Server {
    pub(super) fn new(mutant: Option<Mutant>) -> Self {
        Self {
            mutant,
            ..Self::default()
        }
    }

    pub(super) fn open(&mut self) -> SessionId {
        self.opened += 1;
        self.sessions.insert(self.opened, Backend::default());
        self.opened
    }

    pub(super) fn draw(&mut self) -> FencingToken {
        self.drawn += 1;
        FencingToken::new(self.drawn)
    }

    /// The session ends, and frees what it held.
    pub(super) fn end(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        self.holds.retain(|(_, holder), _| *holder != session);
    }

    pub(super) fn is_alive(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(super) fn try_lock(&mut self, who: SessionId, tag: Tag, mode: Mode, level: Level) -> bool {
        self.tries += 1;
        let is_moody = self.mutant == Some(Mutant::MoodyServer) && self.tries.is_multiple_of(7);
        let is_lax = self.mutant == Some(Mutant::LaxServer);
        if is_moody || (!is_lax && self.excluded(who, tag, mode)) {
            return false;
        }
        *self.holds.entry((tag, who)).or_default().count(mode, level) += 1;
        true
    }

    /// Whether a session other than `who` keeps it from the lock.
    pub(super) fn excluded(&self, who: SessionId, tag: Tag, mode: Mode) -> bool {
        let mut holds = self.holds.range((tag, 0)..=(tag, SessionId::MAX));
        holds.any(|((_, holder), hold)| *holder != who && hold.excludes(mode))
    }

    /// Whether a session other than `who` waits with this slot or gate.
    pub(super) fn others_wait(&self, who: SessionId, h: i32) -> bool {
        self.holds.iter().any(|((tag, holder), hold)| {
            *holder != who
                && (*tag == Tag::Slot(h) || *tag == Tag::Gate(h))
                && hold.shared + hold.exclusive > 0
        })
    }

    /// `false` where it was not held.
    pub(super) fn unlock(&mut self, who: SessionId, tag: Tag, mode: Mode) -> bool {
        let Some(hold) = self.holds.get_mut(&(tag, who)) else {
            return false;
        };
        let count = hold.count(mode, Level::Session);
        let was_held = *count > 0;
        *count = count.saturating_sub(1);
        self.tidy();
        was_held
    }

    pub(super) fn end_statement(&mut self, who: SessionId) {
        for ((_, holder), hold) in &mut self.holds {
            if *holder == who {
                (hold.exclusive_now, hold.shared_now) = (0, 0);
            }
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        self.holds.retain(|_, hold| *hold != Hold::default());
    }

    pub(super) fn listen(&mut self, who: SessionId, listens: bool) {
        if let Some(backend) = self.sessions.get_mut(&who) {
            backend.listens = listens;
        }
    }

    pub(super) fn notify(&mut self, from: SessionId, keys: &[AdvisoryId]) {
        for (who, backend) in &mut self.sessions {
            if *who != from && backend.listens {
                backend.notifications.extend(keys);
            }
        }
    }

    /// What is on its way to this session.
    pub(super) fn notifications(&mut self, who: SessionId) -> VecDeque<AdvisoryId> {
        let backend = self.sessions.get_mut(&who);
        backend.map_or_else(VecDeque::new, |backend| {
            std::mem::take(&mut backend.notifications)
        })
    }

    /// Everything that a session holds, that of its statement included.
    pub(super) fn held_by(&self, who: SessionId) -> impl Iterator<Item = (Tag, Hold)> + '_ {
        let holds = self.holds.iter();
        holds.filter_map(move |((tag, holder), hold)| (*holder == who).then_some((*tag, *hold)))
    }

    pub(super) fn held(&self) -> impl Iterator<Item = (Tag, SessionId)> + '_ {
        self.holds.keys().copied()
    }
}
