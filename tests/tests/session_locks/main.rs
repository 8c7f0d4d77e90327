//! Session locks on a real server, as the server sees them: what is held, by whom, and under which
//! number.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod cancellation;
mod interop;
mod keys;
mod one_connection;
mod pools;
#[path = "../support/mod.rs"]
mod support;
mod timeouts;
