//! Locks that are transactions, on a real server: directly, and through a real PgBouncer in
//! transaction mode with its stock settings.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod cancellation;
mod commits;
mod deadlocks;
mod decoys;
mod ends;
mod limits;
mod lock_in;
mod lock_in_races;
mod losses;
mod poolers;
mod pools;
mod savepoints;
mod shutdown;
mod standbys;
#[path = "../support/mod.rs"]
mod support;
mod thousands;
mod world;
