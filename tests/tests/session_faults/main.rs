//! Session locks when something breaks: sessions, servers, memory, settings, and the process's own
//! parts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod connecting;
mod lifetime;
mod loss;
mod memory;
mod outages;
mod settings;
mod silence;
#[path = "../support/mod.rs"]
mod support;
