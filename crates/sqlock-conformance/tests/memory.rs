//! The in-memory backend passes the suite.

mod harness;

sqlock_conformance::conformance! {
    harness = harness::Memory,
    capabilities = [advisory_ids, elections, inspect, loss, lost_readers, rebirth, shared, shutdown, tokens, writers_first],
}
