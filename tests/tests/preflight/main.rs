//! The look at a server, and at the way to it, before the first lock: real servers and poolers, and
//! servers that only speak the protocol.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod balancers;
mod bouncer;
mod clients;
mod dangers;
mod direct;
mod engines;
#[path = "../support/fake.rs"]
mod fake;
mod limits;
mod poolers;
mod shadows;
mod standby;
mod starts;
#[path = "../support/mod.rs"]
mod support;
mod warnings;
