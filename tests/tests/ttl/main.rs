//! Leases in a table of a real PostgreSQL.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

mod harness;

use harness::Ttl;

sqlock_conformance::conformance! {
    harness = Ttl,
    capabilities = [inspect, loss, rebirth, shutdown, tokens],
}
