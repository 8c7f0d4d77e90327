//! Everything together: what can happen, one step at a time.

use std::time::Duration;

use rand::{SeedableRng, rngs::StdRng};
use sqlock_core::{AdvisoryId, LockKey, Mode};
use tokio::time::Instant;

use super::{
    caller::Caller,
    faults::Orphan,
    invariants::Violation,
    process::Process,
    request::request,
    rules::{Mutant, Rules},
    server::{Level, Server, SessionId, Tag},
    tokens::Tokens,
};

pub(super) struct World {
    pub(super) rules: Rules,
    pub(super) server: Server,
    pub(super) processes: Vec<Process>,
    pub(super) callers: Vec<Caller>,
    pub(super) orphans: Vec<Orphan>,
    pub(super) now: Instant,
    pub(super) tokens: Tokens,
    /// A session of plain SQL.
    raw: SessionId,
    arrivals: u64,
    pub(super) chance: StdRng,
    /// What happened, where it is to be told.
    pub(super) log: Option<Vec<String>>,
}

pub(super) type Checked = Result<(), Violation>;

impl World {
    pub(super) fn new(rules: &Rules) -> Self {
        let mut server = Server::new(rules.mutant);
        Self {
            raw: server.open(),
            server,
            processes: (0..rules.processes).map(|_| Process::new(rules)).collect(),
            callers: Vec::new(),
            orphans: Vec::new(),
            tokens: Tokens::default(),
            now: Instant::now(),
            rules: rules.clone(),
            arrivals: 0,
            chance: StdRng::seed_from_u64(7),
            log: None,
        }
    }

    pub(super) fn ask(
        &mut self,
        process: usize,
        keys: Vec<LockKey>,
        mode: Mode,
        waits: bool,
    ) -> u64 {
        self.arrivals += 1;
        let arrival = self.arrivals;
        let is_late = self.rules.mutant == Some(Mutant::LateArrival);
        let number = if is_late { u64::MAX - arrival } else { arrival };
        self.note(|_| {
            format!("process {process}: request {arrival}, {keys:?}, {mode:?}, waits: {waits}")
        });
        let owner = self.processes[process].sender.clone();
        let request = request(keys, mode, waits);
        let (mut caller, command) = Caller::ask(process, (arrival, number), request, owner.clone());
        caller.says_goodbye = self.rules.mutant != Some(Mutant::SilentCaller);
        owner.send(command).ok();
        self.callers.push(caller);
        self.look_for_excuses();
        arrival
    }

    pub(super) fn step(&mut self, process: usize, late: bool) -> Checked {
        self.processes[process].step(&mut self.server, self.now, late);
        self.note(|world| format!("process {process}: {:?}", world.processes[process].phase));
        self.after(process)
    }

    pub(super) fn look_for_excuses(&mut self) {
        for index in 0..self.callers.len() {
            let caller = &self.callers[index];
            if caller.is_waiting() && !caller.excuse && !caller.waits() {
                self.callers[index].excuse = self.has_excuse(caller);
            }
        }
    }

    pub(super) fn note(&mut self, what: impl FnOnce(&Self) -> String) {
        if self.log.is_some() {
            let line = what(self);
            self.log.get_or_insert_default().push(line);
        }
    }

    pub(super) fn sleep(&mut self, duration: Duration) {
        self.now += duration;
    }

    /// Notifications that were sent arrive, or do not.
    pub(super) fn deliver(&mut self, process: usize, arrives: bool) {
        let process = &mut self.processes[process];
        let Some(session) = process.session else {
            return;
        };
        let keys = self.server.notifications(session);
        if arrives {
            process.wakes.extend(keys);
        }
    }

    /// Plain SQL locks the key, or unlocks it.
    pub(super) fn raw(&mut self, key: AdvisoryId, mode: Mode, unlock: bool) {
        if unlock {
            self.server.unlock(self.raw, Tag::Key(key), mode);
        } else {
            self.server
                .try_lock(self.raw, Tag::Key(key), mode, Level::Session);
        }
        self.look_for_excuses();
    }

    /// Plain SQL takes what is not its own.
    pub(super) fn occupy_slot(&mut self, slot: i32) {
        let slot = Tag::Slot(slot);
        self.server
            .try_lock(self.raw, slot, Mode::Exclusive, Level::Session);
    }

    pub(super) fn end_raw(&mut self) {
        self.server.end(self.raw);
        self.raw = self.server.open();
    }
}
