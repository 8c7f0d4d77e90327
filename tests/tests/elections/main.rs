//! What is built from locks, on real servers and by several processes.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

mod fleet;
mod history;
mod leases;
mod rounds;
mod several;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "each test binary takes what it needs")]
#[path = "../leases/tools.rs"]
mod tools;
