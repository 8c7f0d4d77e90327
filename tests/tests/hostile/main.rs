//! Bad input, of callers and of servers; and what nobody is to see, or to be allowed.
//!
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
mod inputs;
mod limits;
mod panics;
mod privileges;
mod reports;
mod secrets;
#[path = "../support/mod.rs"]
mod support;
mod twists;
