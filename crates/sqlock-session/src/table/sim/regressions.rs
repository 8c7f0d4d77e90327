//! The shortest runs in which the table once was wrong.

use std::time::Duration;

use sqlock_core::{
    LockKey,
    Mode::{Exclusive, Shared},
};

use super::{rules::Rules, world::World};

pub(super) fn key(id: i64) -> Vec<LockKey> {
    vec![LockKey::from_id(id)]
}

impl World {
    /// Everything that this process can do at this time.
    pub(super) fn run(&mut self, process: usize) {
        for _ in 0..500 {
            self.deliver(process, true);
            if !self.processes[process].is_busy(&self.server, self.now) {
                return;
            }
            self.step(process, false).unwrap();
        }
        panic!("no rest: {:?}", self.processes[process].table);
    }

    pub(super) fn holds_lock(&self, request: u64) -> bool {
        let mut callers = self.callers.iter();
        callers.any(|caller| caller.arrival == request && caller.guard().is_some())
    }

    pub(super) fn end(&mut self, request: u64) {
        let mut callers = self.callers.iter();
        let index = callers
            .position(|caller| caller.arrival == request)
            .unwrap();
        let process = self.callers[index].process;
        self.callers[index].leave();
        self.after(process).unwrap();
    }
}

#[test]
fn a_try_that_wins_behind_a_waiter_that_left_keeps_no_wait_slot() {
    let mut world = World::new(&Rules::default());
    let holder = world.ask(0, key(1), Exclusive, true);
    world.run(0);
    let waiter = world.ask(1, key(1), Exclusive, true);
    world.run(1);
    // the waiter leaves and another comes, between two statements
    world.end(holder);
    world.run(0);
    world.end(waiter);
    let try_it = world.ask(1, key(1), Exclusive, false);
    world.run(1);
    assert!(world.holds_lock(try_it));
    world.settle().unwrap();
}

#[test]
fn looks_that_are_old_at_once_are_used_all_the_same() {
    let mut rules = Rules::default();
    rules.timing.look_again = Duration::ZERO;
    let mut world = World::new(&rules);
    let first = world.ask(0, key(1), Exclusive, true);
    let second = world.ask(0, key(1), Exclusive, true);
    world.run(0);
    world.end(first);
    world.run(0);
    assert!(world.holds_lock(second));
    for _ in 0..3 {
        world.ask(1, key(2), Shared, true);
    }
    world.run(1);
    world.settle().unwrap();
}

#[test]
fn readers_are_told_of_a_gate_that_opened_in_a_statement_that_failed() {
    let rules = Rules {
        failures: true,
        ..Rules::default()
    };
    let mut world = World::new(&rules);
    world.ask(0, key(1), Shared, true);
    world.run(0);
    let writer = world.ask(1, key(1), Exclusive, true);
    world.run(1);
    let reader = world.ask(2, key(1), Shared, true);
    world.run(2);
    assert!(!world.holds_lock(reader));
    world.end(writer);
    for _ in 0..4 {
        // as far as the end of what the row gives back
        world.step(1, false).unwrap();
    }
    world.processes[1].fail_statement(&mut world.server);
    world.run(1);
    world.run(2);
    assert!(world.holds_lock(reader));
    world.settle().unwrap();
}

#[test]
fn a_release_that_comes_after_the_loss_is_not_told_that_all_is_well() {
    let rules = Rules {
        deaths: true,
        ..Rules::default()
    };
    let mut world = World::new(&rules);
    world.ask(0, key(1), Exclusive, true);
    world.run(0);
    let session = world.processes[0].session.unwrap();
    // the verdict on the release is one of the invariants
    world.callers[0].release();
    assert!(world.callers[0].released().is_none());
    world.server.end(session);
    world.run(0);
    world.settle().unwrap();
}

#[test]
fn those_who_want_many_keys_over_and_over_do_not_keep_out_the_rest() {
    let mut world = World::new(&Rules::default());
    let busy: Vec<_> = (0..1500)
        .map(|id| world.ask(0, key(id), Exclusive, true))
        .collect();
    world.step(0, false).unwrap();
    let first = |world: &World| world.processes[0].table.entries.len();
    assert_eq!(first(&world), busy.len());
    // those in the statement come back before it is answered
    let asked = world.processes[0].table.dirty.len();
    assert!(asked > 0);
    let left: Vec<_> = world.processes[0].table.dirty.iter().copied().collect();
    for id in 2000..3500 {
        world.ask(0, key(id), Exclusive, true);
    }
    while !matches!(world.processes[0].phase, super::phase::Phase::Answered(..)) {
        world.processes[0].step(&mut world.server, world.now, false);
    }
    world.step(0, false).unwrap();
    world.step(0, false).unwrap();
    let table = &world.processes[0].table;
    assert!(left.iter().all(|id| table.entries[id].in_batch));
}
