//! The end of a run: everything comes to rest, holders let go one by one, and nothing is left.

use rand::Rng;

use super::{
    caller::State,
    invariants::{Rule, ids},
    process::Process,
    rules::NEVER,
    world::{Checked, World},
};
use crate::server_lock::OnServer;

/// Far more than any run needs to come to rest.
const MOST_STEPS: usize = 5_000;

impl World {
    pub(super) fn settle(&mut self) -> Checked {
        self.end_raw();
        loop {
            self.rest()?;
            self.check_waiters()?;
            let Some(holder) = self.callers.iter().position(|caller| !caller.is_waiting()) else {
                break;
            };
            let process = self.callers[holder].process;
            self.callers[holder].leave();
            self.after(process)?;
        }
        let left = &self.callers;
        Rule::Woken.check(left.is_empty(), || format!("nobody holds: {left:?}"))?;
        self.check_nothing_is_left()
    }

    /// Runs until nothing is to be done but to wait for a poll that never comes.
    fn rest(&mut self) -> Checked {
        // a few polls, or none
        let horizon = self.now + (4 * self.rules.timing.poll).min(NEVER / 2);
        for _ in 0..MOST_STEPS {
            if !self.orphans.is_empty() {
                self.step_orphan()?;
            }
            for process in 0..self.processes.len() {
                self.deliver(process, true);
            }
            // not in turns: those who run in step could hinder each other for ever
            let busy: Vec<_> = (0..self.processes.len())
                .filter(|process| self.processes[*process].is_busy(&self.server, self.now))
                .collect();
            if !busy.is_empty() {
                let next = self.chance.random_range(0..busy.len());
                self.step(busy[next], false)?;
                continue;
            }
            if !self.orphans.is_empty() {
                continue;
            }
            let dues = self.processes.iter().filter_map(Process::next_due);
            let Some(due) = dues.min() else { return Ok(()) };
            if due > horizon {
                return Ok(());
            }
            self.now = self.now.max(due);
        }
        let tables: Vec<_> = self
            .processes
            .iter()
            .map(|process| &process.table)
            .collect();
        Rule::Rest.check(false, || format!("{tables:?}"))
    }

    /// At rest, a waiter has somebody to wait for, and releases are done.
    fn check_waiters(&self) -> Checked {
        let mut callers = self.callers.iter();
        let releasing = callers.find(|caller| matches!(caller.state, State::Releasing(..)));
        Rule::Released.check(releasing.is_none(), || format!("no end: {releasing:?}"))?;
        for waiter in self.callers.iter().filter(|caller| caller.is_waiting()) {
            Rule::Answered.check(waiter.waits(), || format!("no answer: {waiter:?}"))?;
            let mut holders = self
                .callers
                .iter()
                .filter(|caller| caller.guard().is_some());
            let is_held = holders.any(|holder| {
                ids(holder).any(|held| ids(waiter).any(|wanted| wanted.slot() == held.slot()))
            });
            Rule::Woken.check(is_held, || {
                let tables: Vec<_> = self
                    .processes
                    .iter()
                    .map(|process| &process.table)
                    .collect();
                format!(
                    "{waiter:?} has nobody to wait for: {:?} {tables:?}",
                    self.callers
                )
            })?;
        }
        Ok(())
    }

    fn check_nothing_is_left(&mut self) -> Checked {
        let held: Vec<_> = self.server.held().collect();
        Rule::Leak.check(held.is_empty(), || format!("on the server: {held:?}"))?;
        for process in &self.processes {
            let table = &process.table;
            let is_clean = table.in_use == 0
                && table.entries.is_empty()
                && table.grants.is_empty()
                && table.dirty.is_empty()
                && table.sleeping.is_empty()
                && table.standing_back.is_empty()
                && table.again.is_empty()
                && table.announcements.is_empty();
            Rule::Leak.check(is_clean, || format!("{table:?}"))?;
        }
        Ok(())
    }
}
