//! A statement under way, as `statement.rs` writes it: rows in order, and the columns of a row from
//! left to right. Between any two calls of a lock function other sessions' calls may come.

use std::fmt;

use sqlock_core::Mode;

use super::{
    rules::{Mutant, Rules},
    server::{Level, Server, SessionId, Tag},
};
use crate::{
    batch::{Outcome, Row, Step},
    server_lock::OnServer,
    statement::Fenced,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Slot,
    Gate,
    /// Before a reader's key.
    OpenGate,
    Key,
    Look,
    SlotBack,
    GateBack,
    /// After the key, or while it is held.
    Token,
}

const COLUMNS: [Column; 8] = [
    Column::Slot,
    Column::Gate,
    Column::OpenGate,
    Column::Key,
    Column::Look,
    Column::SlotBack,
    Column::GateBack,
    Column::Token,
];

pub(super) struct Execution {
    session: SessionId,
    rows: Vec<Row>,
    mutant: Option<Mutant>,
    fenced: Fenced,
    outcomes: Vec<Outcome>,
    outcome: Outcome,
    is_open: bool,
    column: usize,
}

impl Execution {
    pub(super) fn new(session: SessionId, rows: Vec<Row>, rules: &Rules) -> Self {
        Self {
            session,
            rows,
            mutant: rules.mutant,
            fenced: rules.fenced,
            outcomes: Vec::new(),
            outcome: Outcome::default(),
            is_open: true,
            column: 0,
        }
    }

    /// The next call of a lock function. The answer, once the statement has ended.
    pub(super) fn step(&mut self, server: &mut Server) -> Option<Vec<Outcome>> {
        while let Some(row) = self.rows.get(self.outcomes.len()).copied() {
            let Some(column) = self.columns(row).get(self.column).copied() else {
                self.outcomes.push(std::mem::take(&mut self.outcome));
                (self.column, self.is_open) = (0, true);
                continue;
            };
            self.column += 1;
            if self.call(row, column, server) {
                return None;
            }
        }
        if self.mutant != Some(Mutant::LongTransactions) {
            server.end_statement(self.session);
        }
        Some(std::mem::take(&mut self.outcomes))
    }

    fn columns(&self, row: Row) -> [Column; 8] {
        let mut columns = COLUMNS;
        match (self.mutant, row.step) {
            (Some(Mutant::LookBeforeUnlock), Step::Unlock(_)) => columns.swap(3, 4),
            (Some(Mutant::TokenBeforeKey), _) => columns.rotate_right(1),
            (Some(Mutant::KeyBeforeSlot), Step::TryAsWaiter { .. }) => columns[..4].rotate_left(2),
            _ => {}
        }
        columns
    }

    /// Whether there was something to call.
    fn call(&mut self, row: Row, column: Column, server: &mut Server) -> bool {
        let who = self.session;
        let (key, h) = (Tag::Key(row.id), row.id.slot().0);
        let (slot, gate) = (Tag::Slot(h), Tag::Gate(h));
        let mut lock = |tag, mode, level| server.try_lock(who, tag, mode, level);
        let given = &mut self.outcome;
        let keeps = self.mutant == Some(Mutant::KeptSlot);
        let open_gates = self.mutant == Some(Mutant::OpenGates);
        match (column, row.step) {
            (Column::Slot, Step::TryAsWaiter { waiting, .. }) => {
                let has_slots = self.mutant != Some(Mutant::NoSlots);
                given.waiting.slot =
                    waiting.slot || (has_slots && lock(slot, Mode::Shared, Level::Session));
            }
            (Column::Slot, Step::StopWaiting(back)) if back.slot => {
                given.waiting.slot = !server.unlock(who, slot, Mode::Shared);
            }
            (Column::Gate, Step::TryAsWaiter { mode, waiting }) if mode == Mode::Exclusive => {
                given.waiting.gate = waiting.gate || lock(gate, mode, Level::Session);
            }
            (Column::Gate, Step::StopWaiting(back)) if back.gate => {
                given.waiting.gate = !server.unlock(who, gate, Mode::Exclusive);
            }
            (
                Column::OpenGate,
                Step::Try(Mode::Shared)
                | Step::TryAsWaiter {
                    mode: Mode::Shared, ..
                },
            ) => {
                self.is_open = lock(gate, Mode::Shared, Level::Transaction) || open_gates;
            }
            (Column::Key, Step::Unlock(mode)) => given.done = server.unlock(who, key, mode),
            (Column::Key, Step::Try(mode) | Step::TryAsWaiter { mode, .. }) if self.is_open => {
                given.done = lock(key, mode, Level::Session);
            }
            (Column::Look, Step::Unlock(_) | Step::LookForWaiter | Step::StopWaiting(_)) => {
                given.quiet = lock(slot, Mode::Exclusive, Level::Transaction);
                if self.mutant == Some(Mutant::LookBeforeUnlock) {
                    server.end_statement(who);
                }
            }
            (Column::Look, Step::LookForWriter) => {
                given.quiet = lock(gate, Mode::Shared, Level::Transaction) || open_gates;
            }
            (Column::SlotBack, Step::TryAsWaiter { .. }) if given.done && given.waiting.slot => {
                given.waiting.slot = !(keeps || server.unlock(who, slot, Mode::Shared));
            }
            (Column::GateBack, Step::TryAsWaiter { .. }) if given.done && given.waiting.gate => {
                given.waiting.gate = !(keeps || server.unlock(who, gate, Mode::Exclusive));
            }
            (Column::Token, step)
                if self.fenced == Fenced::Yes
                    && (given.grants(step) || self.mutant == Some(Mutant::TokenBeforeKey)) =>
            {
                given.token = Some(server.draw());
            }
            _ => return false,
        }
        true
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {} of row {}", self.column, self.outcomes.len())
    }
}
