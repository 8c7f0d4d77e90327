//! The conformance suite for transaction-advisory locks on a real PostgreSQL.
//!
//! Neither `loss` nor `shutdown` applies: a loss is learned at the next statement, and a shut-down
//! waits for those who work in their guards. The tests of the cases have both.

#![allow(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod harness;

mod direct {
    sqlock_conformance::conformance! {
        harness = crate::harness::Direct,
        capabilities = [advisory_ids, inspect, shared],
    }
}

mod pooled {
    sqlock_conformance::conformance! {
        harness = crate::harness::Pooled,
        capabilities = [advisory_ids, inspect, shared],
    }
}
