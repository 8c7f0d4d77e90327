//! Each of these bugs breaks an invariant. One that did not would say that the simulation is blind.

use rand::{RngCore, SeedableRng, rngs::StdRng};

use super::{
    invariants::Rule,
    rules::{Mutant, Rules},
    schedule::run,
};
use crate::statement::Fenced;

const MOST_RUNS: u64 = 3000;

/// Chance comes upon a run that breaks this rule.
#[track_caller]
fn convicts(rules: &Rules, rule: Rule) {
    let breaks = |seed: u64| {
        let mut chance = StdRng::seed_from_u64(seed);
        let events: Vec<_> = (0..300).map(|_| chance.next_u32()).collect();
        run(rules, &events).is_err_and(|violation| violation.rule == rule)
    };
    let mutant = rules.mutant;
    assert!((0..MOST_RUNS).any(breaks), "{mutant:?} breaks no rule");
}

#[track_caller]
fn mutant(mutant: Mutant, rule: Rule) {
    convicts(&Rules::with(mutant), rule);
}

#[test]
fn a_look_before_the_unlock() {
    mutant(Mutant::LookBeforeUnlock, Rule::Woken);
}

#[test]
fn a_try_before_the_wait_slot() {
    mutant(Mutant::KeyBeforeSlot, Rule::Woken);
}

#[test]
fn listening_in_the_same_statement_as_the_try() {
    mutant(Mutant::ListenWithTry, Rule::Woken);
}

#[test]
fn listening_for_a_moment_only() {
    mutant(Mutant::DeafSleeper, Rule::Woken);
}

#[test]
fn releases_that_are_not_announced() {
    mutant(Mutant::Silence, Rule::Woken);
}

#[test]
fn notifications_that_nobody_reads() {
    mutant(Mutant::DeafTable, Rule::Woken);
}

#[test]
fn releases_by_key() {
    mutant(Mutant::ReleaseByKey, Rule::Backed);
}

#[test]
fn callers_who_leave_without_a_word() {
    mutant(Mutant::SilentCaller, Rule::Truthful);
}

#[test]
fn wait_slots_that_are_kept() {
    mutant(Mutant::KeptSlot, Rule::Leak);
}

#[test]
fn locks_that_exclude_nobody() {
    mutant(Mutant::LaxServer, Rule::Exclusion);
}

#[test]
fn looks_that_last() {
    mutant(Mutant::LongTransactions, Rule::Leak);
}

#[test]
fn refusals_without_a_reason() {
    mutant(Mutant::MoodyServer, Rule::Truthful);
}

#[test]
fn latecomers_first() {
    mutant(Mutant::LateArrival, Rule::Order);
}

#[test]
fn losses_that_nobody_is_told_of() {
    let rules = Rules {
        deaths: true,
        ..Rules::with(Mutant::UntoldLoss)
    };
    convicts(&rules, Rule::Backed);
    convicts(&rules, Rule::Books);
}

#[test]
fn requests_that_get_lost() {
    mutant(Mutant::LostRequest, Rule::Answered);
}

#[test]
fn receipts_that_come_early() {
    mutant(Mutant::EarlyReceipt, Rule::Released);
}

#[test]
fn tokens_that_come_too_early_or_are_passed_on() {
    for mutant in [Mutant::TokenBeforeKey, Mutant::TokensPassedOn] {
        let rules = Rules {
            fenced: Fenced::Yes,
            ..Rules::with(mutant)
        };
        convicts(&rules, Rule::Tokens);
    }
}

#[test]
fn wait_slots_that_are_never_to_be_had() {
    mutant(Mutant::NoSlots, Rule::Rest);
}

#[test]
fn failed_statements_that_are_thought_to_have_done_nothing() {
    let rules = Rules {
        failures: true,
        ..Rules::with(Mutant::FailureUndone)
    };
    convicts(&rules, Rule::HeldOnce);
}

#[test]
fn failed_statements_that_are_thought_to_have_done_everything() {
    let rules = Rules {
        failures: true,
        ..Rules::with(Mutant::FailureDone)
    };
    convicts(&rules, Rule::Backed);
}

#[test]
fn a_budget_that_is_not_kept() {
    // what the owner is told is more than what the server has
    let rules = Rules {
        budget: 4,
        ..Rules::with(Mutant::Spendthrift)
    };
    convicts(&rules, Rule::Budget);
}
