//! Bugs put back in, most of which other libraries have had. Each is a variant that the model must
//! convict: a model that would pass them all proves nothing.

use crate::{
    model::Protocol,
    properties::{ALIVE_AT_BIRTH, NO_REVIVAL, ONE_BELIEVES, OWN_RELEASE, ROW_COVERS, TOKENS_RISE},
    shortest,
};

/// One thing that is done otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A renewal asks for name and owner, and not whether the lease has run out (case 21).
    RenewalOfExpired,
    /// The clock is the transaction's beginning, and the wait for the row comes after (case 22).
    ClockBeforeTheLock,
    /// A renewal asks for the name alone (case 19).
    RenewalByName,
    /// A release asks for the name alone.
    ReleaseByName,
    /// The first two clients are of one host, and its name is their owner (case 20).
    SharedOwner,
    /// A holder's deadline counts from when it got the answer (case 23).
    DeadlineFromTheAnswer,
    /// The token is drawn, and the wait for the row comes after.
    TokenBeforeTheLock,
    /// The next token is the row's and one, and the row is swept.
    SweepForgetsTheFloor,
    /// A renewal can shorten the lease, and its holder takes note when it gets the answer.
    ShorterFromTheAnswer,
    /// A renewal can shorten the lease, and its holder takes note when it sends it. One that is
    /// given up and carried out late still comes after a longer one.
    ShorterFromTheSending,
}

impl Bug {
    /// What it breaks. Not everything: the rest of the protocol is still there.
    fn breaks(self) -> &'static [&'static str] {
        match self {
            Self::RenewalOfExpired => &[NO_REVIVAL],
            // its holder counts from before the request, and so is wrong about nothing
            Self::ClockBeforeTheLock => &[ALIVE_AT_BIRTH, NO_REVIVAL],
            Self::RenewalByName => &[ONE_BELIEVES, ROW_COVERS],
            Self::ReleaseByName => &[OWN_RELEASE, ONE_BELIEVES],
            Self::SharedOwner => &[OWN_RELEASE, ONE_BELIEVES],
            Self::DeadlineFromTheAnswer => &[ONE_BELIEVES, ROW_COVERS],
            Self::TokenBeforeTheLock | Self::SweepForgetsTheFloor => &[TOKENS_RISE],
            Self::ShorterFromTheAnswer | Self::ShorterFromTheSending => &[ONE_BELIEVES],
        }
    }
}

/// Finds the shortest run that shows each. `flights` are as few as it takes.
fn convict(bug: Bug, flights: usize) {
    let extends = matches!(bug, Bug::ShorterFromTheAnswer | Bug::ShorterFromTheSending);
    for property in bug.breaks() {
        let protocol = Protocol {
            bug: Some(bug),
            extends,
            looked_for: vec![property],
            ..Protocol::sound(2, flights)
        };
        let run = shortest(protocol).unwrap_or_else(|| panic!("{bug:?}: always {property}"));
        println!(
            "{bug:?}: not \"{property}\" after {} steps: {run:?}",
            run.len()
        );
    }
}

#[test]
fn case_19_renewal_by_name() {
    convict(Bug::RenewalByName, 2);
}

#[test]
fn release_by_name() {
    convict(Bug::ReleaseByName, 3);
}

#[test]
fn case_20_an_owner_that_two_share() {
    convict(Bug::SharedOwner, 3);
}

#[test]
fn case_21_an_expired_lease_is_revived() {
    convict(Bug::RenewalOfExpired, 2);
}

#[test]
fn case_22_the_clock_from_before_the_wait() {
    convict(Bug::ClockBeforeTheLock, 2);
}

#[test]
fn case_23_a_deadline_from_the_answer() {
    convict(Bug::DeadlineFromTheAnswer, 2);
}

#[test]
fn a_token_from_before_the_wait() {
    convict(Bug::TokenBeforeTheLock, 3);
}

#[test]
fn a_sweep_that_forgets_the_floor() {
    convict(Bug::SweepForgetsTheFloor, 3);
}

#[test]
fn a_shorter_extension_that_only_its_answer_tells_of() {
    convict(Bug::ShorterFromTheAnswer, 2);
}

#[test]
fn a_shorter_extension_that_comes_late() {
    convict(Bug::ShorterFromTheSending, 2);
}
