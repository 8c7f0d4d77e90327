//! The shortest runs in which the table once was wrong about requests for several keys.

use std::time::Duration;

use sqlock_core::{
    LockKey,
    Mode::{Exclusive, Shared},
};

use super::{regressions::key, rules::Rules, world::World};

fn keys(ids: [i64; 2]) -> Vec<LockKey> {
    ids.map(LockKey::from_id).to_vec()
}

#[test]
fn one_of_several_keys_that_is_waited_for_keeps_no_wait_slot() {
    let mut world = World::new(&Rules::default());
    let holder = world.ask(0, key(2), Exclusive, true);
    world.run(0);
    world.ask(1, key(2), Exclusive, true);
    world.run(1);
    world.end(holder);
    world.run(0);
    // the notification and the request arrive together
    world.ask(1, keys([1, 2]), Exclusive, true);
    world.run(1);
    world.settle().unwrap();
}

#[test]
fn readers_of_several_keys_join_readers_of_one() {
    let mut world = World::new(&Rules::default());
    world.ask(0, key(1), Shared, true);
    world.run(0);
    let both = world.ask(0, keys([1, 2]), Shared, false);
    world.run(0);
    assert!(world.holds_lock(both));
    let again = world.ask(0, keys([1, 2]), Shared, true);
    world.run(0);
    assert!(world.holds_lock(again));
    world.settle().unwrap();
}

#[test]
fn readers_of_several_keys_do_not_pass_a_writer_that_waits() {
    let mut world = World::new(&Rules::default());
    world.ask(0, key(2), Shared, true);
    world.run(0);
    world.ask(1, key(2), Exclusive, true);
    world.run(1);
    world.sleep(Duration::from_millis(10));
    let late = world.ask(0, keys([1, 2]), Shared, true);
    world.run(0);
    assert!(!world.holds_lock(late));
    world.settle().unwrap();
}

#[test]
fn whoever_waits_for_several_keys_rests_beside_a_wait_slot_that_is_never_free() {
    let mut world = World::new(&Rules::default());
    world.ask(0, key(2), Exclusive, true);
    world.run(0);
    world.occupy_slot(2);
    world.ask(1, keys([1, 2]), Exclusive, true);
    world.run(1);
    world.settle().unwrap();
}

#[test]
fn those_who_wait_for_several_keys_rest_beside_those_who_wait_for_one() {
    let mut world = World::new(&Rules::default());
    world.ask(0, keys([1, 2]), Exclusive, true);
    world.run(0);
    world.ask(1, keys([1, 2]), Exclusive, true);
    world.run(1);
    world.ask(1, key(1), Exclusive, true);
    world.ask(1, key(2), Exclusive, true);
    world.run(1);
    // woken for nothing
    let id = LockKey::from_id(1).id();
    world.processes[1].wakes.push(id);
    world.run(1);
    world.settle().unwrap();
}
