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
mod schedules;
mod tools;
mod trouble;

use harness::Sqlite;

sqlock_conformance::conformance! {
    harness = Sqlite,
    capabilities = [clock_steps, elections, inspect, leases, loss, rebirth, shutdown, tokens],
}
