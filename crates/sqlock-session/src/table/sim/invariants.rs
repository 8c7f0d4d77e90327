//! What must be true after every step.

use std::fmt;

use sqlock_core::{AdvisoryId, LockKey, Mode};

use super::{
    caller::Caller,
    server::{SessionId, Tag},
    world::World,
};
use crate::table::entry::Entry;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Two hold a lock that is exclusive.
    Exclusion,
    /// Whoever holds a lock holds it on the server, in a session that lives.
    Backed,
    /// A session holds a key once at most.
    HeldOnce,
    /// The table counts the holders, and the locks, as there are.
    Books,
    Budget,
    /// Every request is answered, once, and a wait not with "no".
    Answered,
    /// "No" had a reason; an error too.
    Truthful,
    /// First come, first served.
    Order,
    /// The tokens of a key rise.
    Tokens,
    /// Who released is told the truth about it.
    Released,
    /// Nobody sleeps beside a lock that is free.
    Woken,
    /// In the end nothing is left, neither on the server nor in the table.
    Leak,
    /// It comes to rest.
    Rest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) rule: Rule,
    pub(super) what: String,
}

impl Rule {
    pub(super) fn check(self, holds: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
        if holds {
            return Ok(());
        }
        Err(Violation {
            rule: self,
            what: what(),
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)
    }
}

impl World {
    pub(super) fn check(&self) -> Result<(), Violation> {
        self.check_guards()?;
        for process in 0..self.processes.len() {
            self.check_books(process)?;
        }
        Ok(())
    }

    /// Guards that have not been told, of sessions that live: a session that the server has ended
    /// is nobody's fault, as long as its guards are told before its owner does anything else.
    fn check_guards(&self) -> Result<(), Violation> {
        let mut live: Vec<(AdvisoryId, Mode)> = Vec::new();
        for caller in &self.callers {
            let Some((guard, session)) = caller.guard() else {
                continue;
            };
            if guard.lost().cause().is_some() {
                continue;
            }
            let current = self.processes[caller.process].session;
            Rule::Backed.check(current == Some(session), || {
                format!("a guard of session {session} outlives it: {caller:?}")
            })?;
            if !self.server.is_alive(session) {
                continue;
            }
            for id in ids(caller) {
                let held = self.holds(session, id, caller.mode());
                Rule::Backed.check(held == 1, || format!("held {held} times: {id}, {caller:?}"))?;
                live.push((id, caller.mode()));
            }
        }
        for (index, (id, mode)) in live.iter().enumerate() {
            let mut others = live[index + 1..].iter();
            let excluded = others.any(|(other, its)| {
                other == id && (*mode == Mode::Exclusive || *its == Mode::Exclusive)
            });
            Rule::Exclusion.check(!excluded, || format!("{id}: {:?}", self.callers))?;
        }
        Ok(())
    }

    fn check_books(&self, process: usize) -> Result<(), Violation> {
        let process = &self.processes[process];
        let table = &process.table;
        for (id, entry) in &table.entries {
            let holders = entry.held.map_or(0, |lock| lock.holders);
            let grants = table.grants.values();
            let granted = grants.filter(|grant| grant.keys.iter().any(|key| key.id() == *id));
            let granted = u32::try_from(granted.count()).unwrap();
            Rule::Books.check(holders == granted, || {
                format!("{granted} granted: {entry:?}")
            })?;
        }
        let locks: usize = table.entries.values().map(Entry::server_locks).sum();
        Rule::Books.check(table.in_use == locks, || format!("not {locks}: {table:?}"))?;
        let Some(session) = process.session else {
            return Rule::Books.check(table.grants.is_empty(), || format!("grants: {table:?}"));
        };
        let collisions = u32::try_from(self.rules.keys.len()).unwrap();
        let mut total = 0;
        for (tag, hold) in self.server.held_by(session) {
            total += 1;
            let most = if matches!(tag, Tag::Key(_)) {
                1
            } else {
                collisions
            };
            Rule::HeldOnce.check(hold.exclusive + hold.shared <= most, || {
                format!("{tag:?} is held as {hold:?}: {table:?}")
            })?;
        }
        Rule::Budget.check(total <= self.rules.budget, || {
            format!("{total} locks: {table:?}")
        })
    }

    pub(super) fn holds(&self, session: SessionId, id: AdvisoryId, mode: Mode) -> u32 {
        let mut held = self.server.held_by(session);
        let hold = held.find(|(tag, _)| *tag == Tag::Key(id));
        hold.map_or(0, |(_, hold)| match mode {
            Mode::Shared => hold.shared,
            _ => hold.exclusive,
        })
    }
}

pub(super) fn ids(caller: &Caller) -> impl Iterator<Item = AdvisoryId> + '_ {
    caller.request.keys().iter().map(LockKey::id)
}
