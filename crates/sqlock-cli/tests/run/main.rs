//! The command against a real server, with real processes.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: a panic is how they report"
)]

mod auto;
mod codes;
mod doctor;
mod fencing;
mod holder;
mod kills;
mod leases;
mod loss;
mod races;
mod secrets;
mod signals;
mod support;
mod terminal;
mod tls;
mod xact;
