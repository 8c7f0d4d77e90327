//! The session-advisory backend against a real server.

#![allow(clippy::expect_used, reason = "helpers of tests fail as tests do")]

#[path = "session/harness.rs"]
mod harness;

use harness::Session;

sqlock_conformance::conformance! {
    harness = Session,
    capabilities = [advisory_ids, elections, inspect, loss, lost_readers, rebirth, shared, shutdown, writers_first],
}
