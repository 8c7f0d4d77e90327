//! Runs that chance decides.

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestError},
};
use sqlock_core::LockKey;

use super::{
    rules::Rules,
    schedule::{run, story},
};
use crate::statement::Fenced;

/// `PROPTEST_CASES` makes it look further.
fn cases(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok();
    Config {
        cases: asked.and_then(|text| text.parse().ok()).unwrap_or(cases),
        failure_persistence: None,
        max_shrink_time: 20_000,
        max_shrink_iters: u32::MAX,
        ..Config::default()
    }
}

fn explore(rules: &Rules, runs: u32, length: usize) {
    let mut runner = proptest::test_runner::TestRunner::new(cases(runs));
    let result = runner.run(&vec(any::<u32>(), 0..length), |events| {
        run(rules, &events).map_err(|violation| TestCaseError::fail(violation.to_string()))
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, events)) => {
            panic!("{why}\n{events:?}\n{}", story(rules, &events))
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn without_polls_everybody_is_woken() {
    explore(&Rules::default(), 500, 400);
}

#[test]
fn one_key_between_two_processes() {
    let rules = Rules {
        processes: 2,
        keys: vec![LockKey::from_pair(7, 1).unwrap()],
        ..Rules::default()
    };
    explore(&rules, 500, 300);
}

#[test]
fn a_small_budget() {
    let rules = Rules {
        budget: 4,
        ..Rules::default()
    };
    explore(&rules, 300, 300);
}

#[test]
fn everything_breaks() {
    explore(&Rules::chaos(), 500, 400);
}

#[test]
fn with_tokens() {
    let rules = Rules {
        fenced: Fenced::Yes,
        ..Rules::default()
    };
    explore(&rules, 500, 400);
}

#[test]
fn with_tokens_everything_breaks() {
    let rules = Rules {
        fenced: Fenced::Yes,
        ..Rules::chaos()
    };
    explore(&rules, 500, 400);
}

#[test]
fn keys_that_share_a_slot() {
    let mut rules = Rules::chaos();
    rules.failures = false;
    rules.keys = [1, 1 << 32, 2].map(LockKey::from_id).to_vec();
    explore(&rules, 300, 400);
}
