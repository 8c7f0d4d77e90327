//! A process: its table, and a driver that does what the owner task does.

use std::collections::HashMap;

use sqlock_core::{AdvisoryId, LossCause};
use tokio::{sync::mpsc, time::Instant};

use super::{
    execution::Execution,
    phase::Phase,
    rules::{Mutant, Rules},
    server::{Server, SessionId},
};
use crate::{
    batch::Outcome,
    command::Command,
    statement::Fenced,
    table::{Table, Work},
};

#[derive(Debug)]
pub(super) struct Process {
    pub(super) table: Table,
    pub(super) sender: mpsc::UnboundedSender<Command>,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) session: Option<SessionId>,
    pub(super) phase: Phase,
    /// Notifications that have arrived.
    pub(super) wakes: Vec<AdvisoryId>,
    pub(super) rules: Rules,
    /// Why no new session can be had, for so many attempts.
    pub(super) outage: u32,
    pub(super) poll_at: Option<Instant>,
    /// The first keys of grants that were released.
    pub(super) released: HashMap<u64, AdvisoryId>,
    pub(super) is_listening: bool,
    pub(super) unlisten_at: Option<Instant>,
}

impl Process {
    pub(super) fn new(rules: &Rules) -> Self {
        let (sender, commands) = mpsc::unbounded_channel();
        let is_told = rules.mutant != Some(Mutant::TokensPassedOn);
        let fenced = if is_told { rules.fenced } else { Fenced::No };
        let mut table = Table::new(sender.downgrade(), rules.timing, fenced);
        let spends = rules.mutant == Some(Mutant::Spendthrift);
        table.set_budget(if spends { usize::MAX } else { rules.budget });
        Self {
            table,
            sender,
            commands,
            session: None,
            phase: Phase::Idle,
            wakes: Vec::new(),
            rules: rules.clone(),
            outage: 0,
            poll_at: None,
            released: HashMap::new(),
            is_listening: false,
            unlisten_at: None,
        }
    }

    /// Whether a step would do anything now.
    pub(super) fn is_busy(&self, server: &Server, now: Instant) -> bool {
        !matches!(self.phase, Phase::Idle)
            || !self.commands.is_empty()
            || !self.wakes.is_empty()
            || self.table.has_work()
            || self.next_due().is_some_and(|at| at <= now)
            || self
                .session
                .is_some_and(|session| !server.is_alive(session))
    }

    /// One thing that can be told apart from outside. `late`: the end of the session, where it has
    /// ended, is noticed by the next statement only.
    pub(super) fn step(&mut self, server: &mut Server, now: Instant, late: bool) {
        let is_over = self
            .session
            .is_some_and(|session| !server.is_alive(session));
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle if is_over && !late => self.lose_session(None, server),
            Phase::Idle => self.serve(server, now),
            Phase::Answered(work, outcomes) => self.complete(work, &outcomes, server, now),
            Phase::Listening(work) | Phase::Asking(work, _) | Phase::Failed(work) if is_over => {
                self.lose_session(Some(work), server);
            }
            Phase::Announcing(_) if is_over => self.lose_session(None, server),
            Phase::Listening(work) => {
                self.listen(server, true);
                self.ask(work);
            }
            Phase::Asking(work, mut execution) => {
                self.phase = match execution.step(server) {
                    None => Phase::Asking(work, execution),
                    Some(outcomes) => Phase::Answered(work, outcomes),
                };
            }
            Phase::Failed(work) => self.recover(work, server, now),
            Phase::Announcing(keys) => {
                if let Some(session) = self.session {
                    server.notify(session, &keys);
                }
                self.look_after_listening(server, now);
            }
        }
        self.without_jitter(now);
    }

    fn serve(&mut self, server: &mut Server, now: Instant) {
        while let Ok(command) = self.commands.try_recv() {
            self.apply(command);
        }
        if self.table.next_tick().is_some_and(|at| at <= now) {
            self.table.tick(now);
            self.in_order();
        }
        for id in std::mem::take(&mut self.wakes) {
            if self.rules.mutant != Some(Mutant::DeafTable) {
                self.table.wake(id);
            }
        }
        if self.session.is_none() && !(self.table.has_work() && self.connect(server)) {
            return;
        }
        let work = self.table.next_work(now);
        if work.batch.rows.is_empty() {
            return self.look_after_listening(server, now);
        }
        let is_late = self.rules.mutant == Some(Mutant::ListenWithTry);
        if work.batch.has_waiters() && !self.is_listening && !is_late {
            self.phase = Phase::Listening(work);
            return;
        }
        self.ask(work);
    }

    pub(super) fn apply(&mut self, command: Command) {
        match command {
            Command::Acquire(asked)
                if self.rules.mutant == Some(Mutant::LostRequest)
                    && asked.number.is_multiple_of(9) => {}
            Command::Acquire(asked) => self.table.acquire(asked),
            Command::Forget { number, request } => self.table.forget(number, &request),
            Command::Release { grant, receipt } => {
                let grant = self.mistaken(grant);
                let is_early = self.rules.mutant == Some(Mutant::EarlyReceipt);
                self.table
                    .release(grant, receipt.as_ref().filter(|_| !is_early));
            }
            Command::Inspect { .. } | Command::ShutDown { .. } => {}
        }
    }

    fn ask(&mut self, work: Work) {
        if let Some(session) = self.session {
            let rows = work.batch.rows.clone();
            let execution = Execution::new(session, rows, &self.rules);
            self.phase = Phase::Asking(work, execution);
        }
    }

    fn complete(&mut self, work: Work, outcomes: &[Outcome], server: &mut Server, now: Instant) {
        if work.batch.has_waiters() {
            self.listen(server, true);
        }
        if self.table.complete(work, outcomes, now).is_err() {
            return self.give_up(&LossCause::Undetermined, None, server);
        }
        self.announce(server, now);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let unlisten = self.session.and(self.unlisten_at);
        let dues = [self.table.next_tick(), unlisten];
        dues.into_iter().flatten().min()
    }
}
