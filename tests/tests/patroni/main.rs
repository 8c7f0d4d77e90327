//! A Patroni cluster in containers: etcd, and three nodes. It takes a container engine and an image
//! with Patroni in it, and minutes: `scripts/test-patroni` makes the one and runs these; a plain run
//! of the tests lists them as ignored.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../failover/nodes.rs"]
mod nodes;

mod cluster;
mod engine;
mod partition;
mod rest;
mod switchover;
