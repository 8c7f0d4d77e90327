//! The checker on histories with one fault planted in each.

use std::collections::BTreeMap;

use sqlock_tests::lab::{
    Backend, Entry, Event, Facts, Fault, KEYS, Setup, Violation, Way, Write, check,
};

const SECOND: i64 = 1_000_000_000;

fn at(at: i64, process: u32, event: Event) -> Entry {
    Entry { at, process, event }
}

fn granted(grant: u32, token: i64, asked: i64) -> Event {
    Event::Granted {
        grant,
        key: 7,
        token: Some(token),
        asked,
    }
}

fn lost(grant: u32) -> Event {
    Event::Lost {
        grant,
        cause: "for a reason".to_owned(),
    }
}

fn checked(backend: Backend, history: &[Entry], facts: &Facts) -> Vec<Violation> {
    let setup = Setup {
        backend,
        way: Way::Direct,
        flaw: None,
    };
    check(history, facts, setup)
}

/// One after the other: nothing is wrong with it.
fn in_turn() -> Vec<Entry> {
    vec![
        at(10, 1, granted(0, 1, 5)),
        at(20, 1, Event::Believed { grant: 0 }),
        at(30, 1, Event::Ending { grant: 0 }),
        at(35, 1, Event::Released { grant: 0 }),
        at(40, 2, granted(0, 2, 36)),
        at(50, 2, Event::Believed { grant: 0 }),
        at(60, 2, Event::Ending { grant: 0 }),
        at(65, 2, Event::Released { grant: 0 }),
    ]
}

#[test]
fn holders_in_turn_are_right() {
    for backend in [Backend::Session, Backend::Ttl] {
        assert_eq!(checked(backend, &in_turn(), &Facts::default()), []);
    }
}

#[test]
fn two_who_believe_at_once_are_found() {
    let mut history = in_turn();
    history.push(at(45, 1, Event::Believed { grant: 0 }));
    for backend in [Backend::Session, Backend::Ttl] {
        let found = checked(backend, &history, &Facts::default());
        let is_found =
            |violation: &Violation| matches!(violation, Violation::TwoHolders { key: 7, .. });
        assert!(found.iter().any(is_found), "{found:?}");
    }
}

#[test]
fn a_session_may_learn_late_and_a_lease_may_not() {
    let history = [
        at(10, 1, granted(0, 1, 5)),
        at(40, 2, granted(0, 2, 36)),
        at(45, 1, Event::Believed { grant: 0 }),
        at(50, 1, lost(0)),
    ];
    assert_eq!(checked(Backend::Session, &history, &Facts::default()), []);
    assert_eq!(checked(Backend::Ttl, &history, &Facts::default()).len(), 1);
}

#[test]
fn a_session_must_not_learn_too_late() {
    let mut history = vec![
        at(10, 1, granted(0, 1, 5)),
        at(40, 2, granted(0, 2, 36)),
        at(45, 1, Event::Believed { grant: 0 }),
        at(60 * SECOND, 1, lost(0)),
    ];
    assert_eq!(
        checked(Backend::Session, &history, &Facts::default()).len(),
        1
    );

    // it slept for most of it
    let (fault, target) = (Fault::PauseWorker, Some(1));
    history.push(at(50, 0, Event::Struck { fault, target }));
    history.push(at(59 * SECOND, 0, Event::Healed { fault, target }));
    assert_eq!(checked(Backend::Session, &history, &Facts::default()), []);
}

#[test]
fn a_release_after_another_had_it_is_found() {
    let history = [
        at(10, 1, granted(0, 1, 5)),
        at(40, 2, granted(0, 2, 36)),
        at(50, 1, Event::Ending { grant: 0 }),
        at(55, 1, Event::Released { grant: 0 }),
    ];
    let found = checked(Backend::Session, &history, &Facts::default());
    assert!(
        matches!(found[..], [Violation::LateRelease { key: 7, .. }]),
        "{found:?}"
    );
}

#[test]
fn tokens_that_repeat_or_go_back_are_found() {
    let with_second = |token| {
        let mut history = in_turn();
        history[4] = at(40, 2, granted(0, token, 36));
        checked(Backend::Ttl, &history, &Facts::default())
    };
    assert_eq!(
        with_second(1),
        [Violation::TokenRepeated { key: 7, token: 1 }]
    );
    let back = Violation::TokenWentBack {
        key: 7,
        before: 1,
        after: 0,
    };
    assert_eq!(with_second(0), [back]);
}

#[test]
fn writes_that_go_back_are_found() {
    let write = |token| Write {
        key: 7,
        token: Some(token),
    };
    let facts = Facts {
        writes: vec![write(1), write(3), write(2)],
        ..Facts::default()
    };
    let found = checked(Backend::Ttl, &in_turn(), &facts);
    assert_eq!(
        found,
        [Violation::WriteWentBack {
            key: 7,
            before: 3,
            after: 2
        }]
    );
}

fn commits(counts: &[i64], unknown: u32) -> Vec<Entry> {
    let mut history = Vec::new();
    let mut grant = 0;
    let mut grant_one = |history: &mut Vec<Entry>| {
        grant += 1;
        history.push(at(10, 1, granted(grant, 0, 5)));
        grant
    };
    for &count in counts {
        let grant = grant_one(&mut history);
        history.push(at(20, 1, Event::Committed { grant, count }));
    }
    for _ in 0..unknown {
        let grant = grant_one(&mut history);
        history.push(at(20, 1, Event::CommitUnknown { grant }));
    }
    history
}

#[test]
fn commits_are_counted() {
    let counted = |count| Facts {
        counts: BTreeMap::from([(7, count)]),
        ..Facts::default()
    };
    let of = |history: &[Entry], count| checked(Backend::Xact, history, &counted(count));
    assert_eq!(of(&commits(&[1, 2], 0), 2), []);
    assert_eq!(of(&commits(&[1, 2], 1), 3), []);
    let lost = Violation::UpdatesLost {
        key: 7,
        counted: 1,
        acknowledged: 2,
    };
    assert_eq!(of(&commits(&[1, 2], 0), 1), [lost]);
    let more = Violation::WorkWithoutCommit {
        key: 7,
        counted: 4,
        possible: 3,
    };
    assert_eq!(of(&commits(&[1, 2], 1), 4), [more]);
    let twice = Violation::CountedTwice { key: 7, count: 1 };
    assert_eq!(of(&commits(&[1, 1], 0), 2), [twice]);
}

#[test]
fn a_key_that_nobody_has_for_long_is_found() {
    let calm_of = |second| {
        let mut history = vec![at(10, 0, Event::Calm)];
        for key in 0..KEYS {
            let granted = Event::Granted {
                grant: 0,
                key,
                token: Some(1),
                asked: 5,
            };
            let late = if key == 1 { second } else { 20 };
            history.push(at(late, 1, granted));
        }
        history.push(at(40 * SECOND, 0, Event::Over));
        checked(Backend::Ttl, &history, &Facts::default())
    };
    assert_eq!(calm_of(SECOND), []);
    // in time for the run, and too late for a lease
    let found = calm_of(20 * SECOND);
    assert!(
        matches!(found[..], [Violation::StillHeld { key: 1, .. }]),
        "{found:?}"
    );
    let found = calm_of(50 * SECOND);
    assert!(
        matches!(found[..], [Violation::StillHeld { key: 1, .. }]),
        "{found:?}"
    );
}

#[test]
fn a_leak_is_found() {
    let left = |tasks, sockets| {
        let mut history = in_turn();
        history.push(at(70, 2, Event::Left { tasks, sockets }));
        checked(Backend::Session, &history, &Facts::default())
    };
    assert_eq!(left(0, 0), []);
    for (tasks, sockets) in [(1, 0), (0, 1)] {
        let leak = Violation::Leaked {
            process: 2,
            tasks,
            sockets,
        };
        assert_eq!(left(tasks, sockets), [leak]);
    }
}

#[test]
fn the_starved_and_what_is_left_over_are_found() {
    let history = [at(10, 0, Event::Calm), at(20, 1, granted(0, 1, 5))];
    let facts = Facts {
        alive: vec![1, 2],
        leftovers: vec!["a lock".to_owned()],
        ..Facts::default()
    };
    let found = checked(Backend::Session, &history, &facts);
    let left = Violation::LeftOver("a lock".to_owned());
    assert_eq!(found, [Violation::Starved { process: 2 }, left]);
}
