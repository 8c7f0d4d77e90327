//! Transaction-advisory locks on a real PostgreSQL.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod harness;
mod transactions;

use harness::Xact;

sqlock_conformance::conformance! {
    harness = Xact,
    capabilities = [advisory_ids, inspect, shared],
}
