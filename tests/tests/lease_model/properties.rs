//! What must hold always, and what must happen at times.

use stateright::Property;

use crate::{
    model::Protocol,
    state::{Acquisition, CLIENTS, Fault, Flight, Place, State, TTL, What},
};

pub(crate) const ONE_BELIEVES: &str = "no two believe that they hold the lease";
pub(crate) const ROW_COVERS: &str = "who believes has the row, for at least as long";
pub(crate) const TOKENS_RISE: &str = "a grant's token is above all before";
pub(crate) const NO_REVIVAL: &str = "a renewal does not revive a lease that has run out";
pub(crate) const OWN_RELEASE: &str = "a release does not free another's lease";
pub(crate) const ALIVE_AT_BIRTH: &str = "no lease has run out before its row was had";
pub(crate) const TOKENS_DECIDE: &str = "two who believe have two tokens";

pub(crate) const SAFETY: [&str; 6] = [
    ONE_BELIEVES,
    ROW_COVERS,
    TOKENS_RISE,
    NO_REVIVAL,
    OWN_RELEASE,
    ALIVE_AT_BIRTH,
];

pub(crate) fn safety() -> Vec<Property<Protocol>> {
    vec![
        Property::always(ONE_BELIEVES, |_, state: &State| {
            state.believers().count() < 2
        }),
        Property::always(ROW_COVERS, |_, state: &State| {
            state.believers().all(|(client, lease)| {
                state.row.is_some_and(|row| {
                    let is_holder = |holder: Acquisition| {
                        (holder.client, holder.serial) == (client, lease.serial)
                    };
                    row.holder.is_some_and(is_holder) && row.left >= lease.left
                })
            })
        }),
        Property::always(TOKENS_RISE, |_, state: &State| {
            state.fault != Some(Fault::TokenWentBack)
        }),
        Property::always(NO_REVIVAL, |_, state: &State| {
            state.fault != Some(Fault::Revived)
        }),
        Property::always(OWN_RELEASE, |_, state: &State| {
            state.fault != Some(Fault::FreedAnothers)
        }),
        Property::always(ALIVE_AT_BIRTH, |_, state: &State| {
            state.fault != Some(Fault::BornExpired)
        }),
        Property::always(TOKENS_DECIDE, |_, state: &State| {
            let tokens: Vec<_> = state.believers().map(|(_, lease)| lease.token).collect();
            tokens.len() < 2 || tokens[0] != tokens[1]
        }),
    ]
}

pub(crate) const TAKE_OVER: &str = "another has the lease of one who has not looked yet";
pub(crate) const LATE_GRANT: &str = "a grant comes after its deadline";
pub(crate) const RENEWAL_UNKNOWN: &str = "a lease was renewed, and its holder does not know";
pub(crate) const UNDO: &str = "what an acquisition took that was given up is on its way back";
pub(crate) const MADE_ANEW: &str = "a row that was swept is made anew";
pub(crate) const LOCKED_FOR_LONG: &str = "a lock is held until the lease that is written is over";
pub(crate) const ALL_HELD: &str = "all three have held the lease";
pub(crate) const REFUSAL: &str = "of two who believe, the resource refuses the older";

pub(crate) const HAPPENINGS: [&str; 6] = [
    TAKE_OVER,
    LATE_GRANT,
    RENEWAL_UNKNOWN,
    UNDO,
    MADE_ANEW,
    LOCKED_FOR_LONG,
];

/// What happens in the model at all, or it would say nothing.
pub(crate) fn happenings() -> Vec<Property<Protocol>> {
    vec![
        Property::sometimes(TAKE_OVER, |_, state: &State| {
            let past = |client: usize| {
                state.clients[client]
                    .lease
                    .is_some_and(|lease| lease.left == 0)
            };
            let mut believers = state.believers();
            believers
                .any(|(believer, _)| (0..CLIENTS).any(|client| client != believer && past(client)))
        }),
        Property::sometimes(LATE_GRANT, |_, state: &State| {
            flights(state).any(|(_, flight)| {
                flight.what == What::Acquire
                    && flight.age == TTL
                    && matches!(flight.place, Place::Answered { .. })
            })
        }),
        Property::sometimes(RENEWAL_UNKNOWN, |_, state: &State| {
            state.believers().any(|(client, lease)| {
                state.clients[client].flights.is_empty()
                    && state.row.is_some_and(|row| row.left > lease.left)
            })
        }),
        Property::sometimes(UNDO, |_, state: &State| {
            let holder = state.row.and_then(|row| row.holder);
            flights(state).any(|(client, flight)| {
                let is_holder =
                    |holder: Acquisition| (holder.client, holder.serial) == (client, flight.serial);
                flight.what == What::GiveBack && holder.is_some_and(is_holder)
            })
        }),
        Property::sometimes(MADE_ANEW, |_, state: &State| {
            state.row.is_none() && state.highest > 0 && state.is_locked()
        }),
        Property::sometimes(LOCKED_FOR_LONG, |_, state: &State| {
            flights(state).any(
                |(_, flight)| matches!(flight.place, Place::Locks { looked, .. } if looked == TTL),
            )
        }),
        Property::sometimes(ALL_HELD, |_, state: &State| state.held == CLIENTS),
        Property::sometimes(REFUSAL, |_, state: &State| {
            let mut tokens = state.believers().map(|(_, lease)| lease.token);
            match (tokens.next(), tokens.next()) {
                (Some(one), Some(other)) => {
                    one.min(other) < state.resource && state.resource == one.max(other)
                }
                _ => false,
            }
        }),
    ]
}

fn flights(state: &State) -> impl Iterator<Item = (usize, Flight)> + '_ {
    let clients = state.clients.iter().enumerate();
    clients.flat_map(|(client, one)| one.flights.iter().map(move |flight| (client, *flight)))
}
