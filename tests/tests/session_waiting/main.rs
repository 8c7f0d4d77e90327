//! How session locks wait: woken and not polled, fair to other processes, and without holding up
//! anything in the server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod deadlocks;
mod fairness;
mod handoff;
mod stuck_notify;
#[path = "../support/mod.rs"]
mod support;
mod vacuum;
