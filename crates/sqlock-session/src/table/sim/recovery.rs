//! A statement that fails midway.

use std::collections::HashSet;

use sqlock_core::{LossCause, Mode};
use tokio::time::Instant;

use super::{
    faults::unavailable,
    phase::Phase,
    process::Process,
    rules::Mutant,
    server::{Server, Tag},
};
use crate::{
    batch::{Outcome, Row, Step, Waiting},
    server_lock::{HeldOnServer, Slot},
    table::Work,
};

impl Process {
    /// The statement under way fails, with whatever it has done by now.
    pub(super) fn fail_statement(&mut self, server: &mut Server) {
        if let Some(session) = self.session
            && server.is_alive(session)
            && let Phase::Asking(..) = &self.phase
            && let Phase::Asking(work, _) = std::mem::replace(&mut self.phase, Phase::Idle)
        {
            server.end_statement(session);
            self.phase = Phase::Failed(work);
        }
    }

    pub(super) fn recover(&mut self, work: Work, server: &mut Server, now: Instant) {
        let done = match self.rules.mutant {
            Some(Mutant::FailureDone) => Some(true),
            Some(Mutant::FailureUndone) => Some(false),
            _ => None,
        };
        if let Some(done) = done {
            let outcomes: Vec<_> = work.batch.rows.iter().map(|row| guess(row, done)).collect();
            self.table.complete(work, &outcomes, now).ok();
            return self.announce(server, now);
        }
        let held = self
            .session
            .into_iter()
            .flat_map(|session| server.held_by(session));
        let on_server = held.map(|(tag, hold)| match tag {
            Tag::Key(id) if hold.exclusive > 0 => HeldOnServer::Key(id, Mode::Exclusive),
            Tag::Key(id) => HeldOnServer::Key(id, Mode::Shared),
            Tag::Slot(slot) => HeldOnServer::Slot(Slot(slot)),
            Tag::Gate(slot) => HeldOnServer::Gate(Slot(slot)),
        });
        let on_server: HashSet<_> = on_server.collect();
        if self
            .table
            .recover(work, &on_server, now, unavailable)
            .is_err()
        {
            return self.give_up(&LossCause::Undetermined, None, server);
        }
        self.announce(server, now);
    }
}

fn guess(row: &Row, done: bool) -> Outcome {
    let waiting = match row.step {
        Step::TryAsWaiter { waiting, .. } if !done => waiting,
        _ => Waiting::default(),
    };
    Outcome {
        done: done || matches!(row.step, Step::Unlock(_)),
        quiet: true,
        waiting,
        token: None,
    }
}
