//! A model of the lease protocol, explored in full: three clients, one key, messages that are
//! delayed or lost, clients that pause or crash, a database that is swept and dies.
//!
//! Runs have any length. What is bounded is how many messages are under way at a time.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

mod bugs;
mod canonical;
mod clients;
mod model;
mod properties;
mod server;
mod state;

use std::{collections::BTreeSet, time::Instant};

use stateright::{Checker, Expectation, Model};

use model::{Action, Protocol};
use properties::{
    ALL_HELD, HAPPENINGS, NO_REVIVAL, ONE_BELIEVES, OWN_RELEASE, REFUSAL, SAFETY, TOKENS_DECIDE,
    TOKENS_RISE,
};

/// Explores all states, and gives what was found: runs that break what must be always, and runs
/// that show what must be sometimes.
fn explore(what: &str, protocol: Protocol) -> BTreeSet<&'static str> {
    let started = Instant::now();
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    let (states, steps) = (checker.unique_state_count(), checker.state_count());
    let depth = checker.max_depth();
    let time = started.elapsed();
    println!("{what}: {states} states, {steps} steps between them, depth {depth}, in {time:?}");
    let mut found = BTreeSet::new();
    for property in checker.model().properties() {
        if let Some(run) = checker.discovery(property.name) {
            if property.expectation == Expectation::Always {
                println!("not {}: {:?}", property.name, run.into_actions());
            }
            found.insert(property.name);
        }
    }
    found
}

/// The shortest run that shows what is looked for.
fn shortest(protocol: Protocol) -> Option<Vec<Action>> {
    let property = protocol.looked_for[0];
    let protocol = Protocol {
        any_client: false,
        ..protocol
    };
    // one thread, or another might be the first to find a longer one
    let checker = protocol.checker().threads(1).spawn_bfs().join();
    let run = checker.discovery(property)?;
    Some(run.into_actions())
}

/// 248,511 states. Sound as well, and too many for every day: up to six messages (1,044,479), or
/// three of one client (444,847), or three ticks to a lease (513,854).
#[test]
fn the_protocol_is_sound() {
    let found = explore(
        "the protocol",
        Protocol {
            looked_for: [&SAFETY[..], &HAPPENINGS[..]].concat(),
            ..Protocol::sound(2, 4)
        },
    );
    // all that must happen does, and nothing else is found
    assert_eq!(found, BTreeSet::from(HAPPENINGS));
}

/// A renewal that asks for less than the lease has left does not shorten it: 13,826 states.
#[test]
fn with_extensions_it_is_sound() {
    let found = explore(
        "with extensions",
        Protocol {
            extends: true,
            looked_for: [&SAFETY[..], &HAPPENINGS[..]].concat(),
            ..Protocol::sound(2, 2)
        },
    );
    assert_eq!(found, BTreeSet::from(HAPPENINGS));
}

#[test]
fn all_three_can_hold_it_in_turn() {
    let protocol = Protocol {
        counts_holders: true,
        looked_for: vec![ALL_HELD],
        ..Protocol::sound(2, 2)
    };
    let run = shortest(protocol).expect("a run in which all three hold the lease");
    println!("{} steps: {run:?}", run.len());
}

/// The one exception: where the server's clock steps forward, two can believe. Then the token
/// decides: theirs differ, and the resource that has seen the newer refuses the older. 133,261
/// states.
#[test]
fn where_the_servers_clock_steps_the_token_decides() {
    let protocol = Protocol {
        clock_steps: true,
        has_resource: true,
        ..Protocol::sound(1, 2)
    };
    let found = explore(
        "with steps of the server's clock",
        Protocol {
            looked_for: vec![TOKENS_RISE, TOKENS_DECIDE, NO_REVIVAL, OWN_RELEASE, REFUSAL],
            ..protocol.clone()
        },
    );
    assert_eq!(found, BTreeSet::from([REFUSAL]));
    for expected in [ONE_BELIEVES, REFUSAL] {
        let looked_for = vec![expected];
        let run = shortest(Protocol {
            looked_for,
            ..protocol.clone()
        });
        let run = run.expect("two who believe");
        println!("\"{expected}\": {} steps: {run:?}", run.len());
    }
}
