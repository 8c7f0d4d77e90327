//! From numbers to events: any sequence of numbers is a run, so that a run can be made shorter.

use std::time::Duration;

use sqlock_core::Mode;

use super::{
    rules::Rules,
    world::{Checked, World},
};

/// A run: these events, and what comes of them in the end.
pub(super) fn run(rules: &Rules, events: &[u32]) -> Checked {
    let mut world = World::new(rules);
    for event in events {
        world.event(*event)?;
    }
    world.settle()
}

/// The same, in words.
pub(super) fn story(rules: &Rules, events: &[u32]) -> String {
    let mut world = World::new(rules);
    world.log = Some(Vec::new());
    let mut events = events.iter();
    let mut end = events.try_for_each(|event| world.event(*event));
    if end.is_ok() {
        world.note(|_| "settling".to_owned());
        end = world.settle();
    }
    let lines = world.log.unwrap_or_default();
    let last = lines.len().saturating_sub(150);
    format!("{}\n{end:?}", lines[last..].join("\n"))
}

impl World {
    pub(super) fn event(&mut self, event: u32) -> Checked {
        let (what, mut rest) = (event % 32, event / 32);
        let mut pick = |limit: usize| {
            let limit = u32::try_from(limit).unwrap();
            let picked = rest % limit;
            rest /= limit;
            usize::try_from(picked).unwrap()
        };
        let process = pick(self.processes.len());
        match what {
            0..=10 => {
                let late = pick(4) == 3;
                return self.step(process, late);
            }
            11..=16 => self.ask_for(process, pick(8), pick(7), pick(3), pick(3)),
            17..=23 if !self.callers.is_empty() => {
                let caller = pick(self.callers.len());
                return self.leave(caller, pick(4));
            }
            24 | 25 => self.deliver(process, true),
            26 => self.sleep(Duration::from_millis(1)),
            27 => self.sleep(Duration::from_millis([3, 6, 25, 120][pick(4)])),
            28 if self.rules.raw => {
                let key = self.rules.keys[pick(self.rules.keys.len())].id();
                let mode = [Mode::Exclusive, Mode::Shared][pick(2)];
                self.raw(key, mode, pick(2) == 1);
            }
            29 if self.rules.losses => self.deliver(process, false),
            30 if self.rules.deaths => return self.kill(process, pick(4), pick(4)),
            31 if self.rules.failures => self.processes[process].fail_statement(&mut self.server),
            _ => return self.step_orphan(),
        }
        Ok(())
    }

    fn ask_for(&mut self, process: usize, first: usize, keys: usize, mode: usize, waits: usize) {
        if self.callers.len() >= 10 {
            return;
        }
        // mostly one key, and mostly the same one
        let count = [1, 1, 1, 1, 2, 2, 3][keys];
        let first = [0, 0, 0, 0, 0, 1, 1, 2][first];
        let all = self.rules.keys.iter().cycle();
        let keys = all.skip(first).take(count).cloned().collect();
        let mode = [Mode::Exclusive, Mode::Exclusive, Mode::Shared][mode];
        self.ask(process, keys, mode, waits != 0);
    }

    fn leave(&mut self, caller: usize, how: usize) -> Checked {
        let process = self.callers[caller].process;
        self.note(|world| {
            let caller = &world.callers[caller];
            format!(
                "request {} ({:?}) ends: {how}",
                caller.arrival, caller.state
            )
        });
        let caller = &mut self.callers[caller];
        match how {
            0 | 1 if caller.guard().is_some() => caller.release(),
            // those who wait are patient
            0 | 1 if caller.is_waiting() => {}
            _ => caller.leave(),
        }
        self.after(process)
    }

    fn kill(&mut self, process: usize, how: usize, outage: usize) -> Checked {
        self.note(|_| format!("process {process} ends: {how}, outage: {outage}"));
        let driven = &mut self.processes[process];
        driven.outage = u32::try_from(outage).unwrap();
        match (how, driven.session) {
            (0, _) => {
                let orphan = driven.abandon_session(&mut self.server);
                self.orphans.extend(orphan);
            }
            (1, _) => driven.shut_down(&mut self.server),
            (_, Some(session)) => self.server.end(session),
            _ => {}
        }
        self.after(process)
    }

    pub(super) fn step_orphan(&mut self) -> Checked {
        if let Some((session, execution)) = self.orphans.last_mut() {
            let session = *session;
            if execution.step(&mut self.server).is_some() {
                self.server.end(session);
                self.orphans.pop();
            }
            self.look_for_excuses();
        }
        self.check()
    }
}
