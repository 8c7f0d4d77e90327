//! Failover for real: a primary and its streaming standby, asynchronous and synchronous, promoted
//! while locks are held and waited for. The chapter on failover names these tests.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod commits;
mod crash;
mod lost_commits;
mod nodes;
mod split_brain;
