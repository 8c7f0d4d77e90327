//! The session-advisory backend against a real server.

#[path = "session/harness.rs"]
mod harness;

use harness::Session;

sqlock_conformance::conformance! {
    harness = Session,
    capabilities = [advisory_ids, inspect, loss, shared],
}
