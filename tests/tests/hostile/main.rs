//! A server that answers with wrong types, wrong counts, nulls, errors, half a message, or nothing:
//! no panic, no wait without an end, and no lock that was not granted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod backends;
#[path = "../support/fake.rs"]
mod fake;
mod greetings;
mod limits;
mod panics;
mod reports;
#[path = "../support/mod.rs"]
mod support;
mod twists;
