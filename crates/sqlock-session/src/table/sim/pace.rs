//! How long one waits beside others who are busy. Nobody polls.

use std::time::Duration;

use sqlock_core::Mode;

use super::{
    actors::{Actor, play},
    rules::{Mutant, Rules},
};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The longest wait of the last of these, who must not starve.
fn longest_wait(rules: &Rules, mut actors: Vec<Actor>) -> Duration {
    if let Err(violation) = play(rules, &mut actors, 24_000) {
        panic!("{violation}");
    }
    let waits: Vec<_> = actors.iter().map(|actor| actor.longest_wait).collect();
    waits[waits.len() - 1]
}

/// A process whose tasks pass the lock on among themselves, and one task far away.
fn beside_a_busy_process(rules: &Rules) -> Duration {
    let busy = || Actor::new(0, Mode::Exclusive, ms(0), ms(0));
    let mut actors: Vec<_> = (0..6).map(|_| busy()).collect();
    actors.push(Actor::new(1, Mode::Exclusive, ms(0), ms(3)));
    let rules = Rules {
        processes: 2,
        distance: 12,
        ..rules.clone()
    };
    longest_wait(&rules, actors)
}

#[test]
fn a_task_elsewhere_is_served_beside_a_busy_process() {
    let longest = beside_a_busy_process(&Rules::default());
    assert!(longest < ms(30), "{longest:?}");
}

#[test]
fn without_a_look_at_others_it_is_not() {
    let mut rules = Rules::default();
    rules.timing.look_again = ms(100_000);
    let longest = beside_a_busy_process(&rules);
    assert!(longest > ms(300), "{longest:?}");
}

/// Readers everywhere, whose locks overlap, and a writer.
fn writer_among_readers(rules: &Rules, keys: &[i64]) -> Duration {
    let rules = Rules {
        processes: 4,
        ..rules.clone()
    };
    let reader = |index: u64| {
        let process = usize::try_from(index % 3).unwrap();
        Actor::new(process, Mode::Shared, ms(2 + index), ms(index % 2)).of(keys)
    };
    let mut actors: Vec<_> = (0..9).map(reader).collect();
    actors.push(Actor::new(3, Mode::Exclusive, ms(1), ms(3)));
    longest_wait(&rules, actors)
}

#[test]
fn a_writer_is_served_among_readers() {
    let longest = writer_among_readers(&Rules::default(), &[1]);
    assert!(longest < ms(60), "{longest:?}");
}

#[test]
fn a_writer_is_served_among_readers_of_several_keys() {
    let longest = writer_among_readers(&Rules::default(), &[1, 2]);
    assert!(longest < ms(60), "{longest:?}");
}

#[test]
fn without_gates_it_is_not() {
    let longest = writer_among_readers(&Rules::with(Mutant::OpenGates), &[1]);
    assert!(longest > ms(300), "{longest:?}");
}

#[test]
fn readers_are_served_among_writers() {
    let writer = |process| Actor::new(process, Mode::Exclusive, ms(0), ms(0));
    let mut actors: Vec<_> = (0..6).map(|index| writer(index % 2)).collect();
    actors.push(Actor::new(2, Mode::Shared, ms(0), ms(3)));
    let longest = longest_wait(&Rules::default(), actors);
    assert!(longest < ms(60), "{longest:?}");
}

#[test]
fn a_process_of_readers_lets_a_writer_in() {
    // none of the readers' statements ever finds the lock free
    let mut actors: Vec<_> = (0..6)
        .map(|index| Actor::new(0, Mode::Shared, ms(3 + index), ms(0)))
        .collect();
    actors.push(Actor::new(1, Mode::Exclusive, ms(0), ms(3)));
    let longest = longest_wait(&Rules::default(), actors);
    assert!(longest < ms(60), "{longest:?}");
}

#[test]
fn those_who_want_several_keys_are_served() {
    let of = |process, keys| Actor::new(process, Mode::Exclusive, ms(1), ms(0)).of(keys);
    let actors = vec![of(0, &[1]), of(1, &[2]), of(2, &[1, 2]), of(0, &[1, 2])];
    let longest = longest_wait(&Rules::default(), actors);
    assert!(longest < ms(100), "{longest:?}");
}
