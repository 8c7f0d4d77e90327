//! Tasks that take a lock over and over, in simulated time.

use std::time::Duration;

use rand::seq::SliceRandom;
use sqlock_core::{LockKey, Mode};
use tokio::time::Instant;

use super::{
    rules::Rules,
    world::{Checked, World},
};

/// How long one call of a lock function takes: a round trip takes half a dozen.
const STEP: Duration = Duration::from_micros(25);

pub(super) struct Actor {
    process: usize,
    keys: Vec<LockKey>,
    mode: Mode,
    holds: Duration,
    pauses: Duration,
    state: State,
    pub(super) longest_wait: Duration,
}

enum State {
    Pausing(Instant),
    Waiting { request: u64, since: Instant },
    Holding { request: u64, until: Instant },
}

impl Actor {
    pub(super) fn new(process: usize, mode: Mode, holds: Duration, pauses: Duration) -> Self {
        Self {
            process,
            keys: vec![LockKey::from_id(1)],
            mode,
            holds,
            pauses,
            state: State::Pausing(Instant::now()),
            longest_wait: Duration::ZERO,
        }
    }

    pub(super) fn of(self, keys: &[i64]) -> Self {
        let keys = keys.iter().copied().map(LockKey::from_id).collect();
        Self { keys, ..self }
    }

    fn act(&mut self, world: &mut World) -> Checked {
        let now = world.now;
        match self.state {
            State::Pausing(until) if until <= now => {
                let request = world.ask(self.process, self.keys.clone(), self.mode, true);
                self.state = State::Waiting {
                    request,
                    since: now,
                };
            }
            State::Waiting { request, since } => {
                self.longest_wait = self.longest_wait.max(now - since);
                let mut callers = world.callers.iter();
                if callers.any(|caller| caller.arrival == request && caller.guard().is_some()) {
                    let until = now + self.holds;
                    self.state = State::Holding { request, until };
                }
            }
            State::Holding { request, until } if until <= now => {
                let mut callers = world.callers.iter();
                if let Some(index) = callers.position(|caller| caller.arrival == request) {
                    world.callers[index].leave();
                    world.after(self.process)?;
                }
                self.state = State::Pausing(now + self.pauses);
            }
            _ => {}
        }
        Ok(())
    }
}

pub(super) fn play(rules: &Rules, actors: &mut [Actor], ticks: u32) -> Checked {
    let mut world = World::new(rules);
    let last = rules.processes - 1;
    for tick in 0..ticks {
        world.sleep(STEP);
        let is_slow = |process: &usize| *process == last && !tick.is_multiple_of(rules.distance);
        let mut order: Vec<_> = (0..=last).filter(|process| !is_slow(process)).collect();
        order.shuffle(&mut world.chance);
        for process in order {
            world.deliver(process, true);
            if world.processes[process].is_busy(&world.server, world.now) {
                world.step(process, false)?;
            }
        }
        for actor in actors.iter_mut() {
            actor.act(&mut world)?;
        }
    }
    Ok(())
}
