//! Fencing tokens on real servers: of advisory locks, where asked for, and of leases; over crashes,
//! restarts, a promotion, a dump. And a resource that checks them.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

#[path = "../support/mod.rs"]
mod support;

mod copies;
mod crashes;
mod draws;
mod harness;
mod kinds;
mod load;
mod record;
mod resource;
mod schema;

mod session {
    sqlock_conformance::conformance! {
        harness = crate::harness::Session<crate::kinds::Sequence>,
        capabilities = [loss, rebirth, shared, shutdown, tokens, writers_first],
    }
}

/// Some of the suite's cases: those that have to do with tokens, and what a failed or cancelled draw
/// could leave behind.
macro_rules! cases {
    ($name:ident, $harness:ty) => {
        mod $name {
            use sqlock_conformance::{cases, run};

            cases! {
                in $harness:
                cancellation::of_an_acquire,
                cancellation::of_an_acquire_by_a_timer,
                load::a_thousand_operations_on_twenty_names,
                load::tasks_aborted_at_random_leave_nothing,
                tokens::they_rise_over_nodes,
                tokens::they_rise_under_contention,
                tokens::they_rise_over_every_key_of_a_guard,
                tokens::an_erased_guard_has_its_token,
            }
        }
    };
    (in $harness:ty: $($theme:ident::$case:ident,)*) => {
        $(
            #[test]
            fn $case() {
                run::<$harness>(stringify!($case), cases::$theme::$case);
            }
        )*
    };
}

cases!(
    session_with_a_row,
    crate::harness::Session<crate::kinds::Row>
);
cases!(xact, crate::harness::Xact<crate::kinds::Sequence>);
cases!(xact_with_a_row, crate::harness::Xact<crate::kinds::Row>);
