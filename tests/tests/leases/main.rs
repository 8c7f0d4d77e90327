//! Leases on a real PostgreSQL: what the database sees, and what becomes of them when things go
//! wrong.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

#[path = "../support/mod.rs"]
mod support;

mod clock_steps;
mod costs;
mod extensions;
mod grouping;
mod holding;
mod listeners;
mod pauses;
mod prepared;
mod queue_faults;
mod queueing;
mod schedules;
mod shared_table;
mod table;
mod text;
mod tools;
mod waiters;
mod waits;
mod waking;
mod world;
