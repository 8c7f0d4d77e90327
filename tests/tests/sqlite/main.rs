//! Leases in a file of SQLite.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

mod files;
mod harness;
mod processes;
mod queue;
mod schedules;
mod tools;
mod trouble;

mod in_any_order {
    sqlock_conformance::conformance! {
        harness = crate::harness::Sqlite<sqlock::sqlite::AnyOrder>,
        capabilities = [clock_steps, elections, inspect, leases, loss, rebirth, shutdown, tokens],
    }
}

mod in_order {
    sqlock_conformance::conformance! {
        harness = crate::harness::Sqlite<sqlock::sqlite::InOrder>,
        capabilities = [inspect, loss, rebirth, shutdown, tokens],
    }
}
