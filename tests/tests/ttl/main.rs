//! Leases in a table of a real PostgreSQL.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

mod harness;

mod polling {
    sqlock_conformance::conformance! {
        harness = crate::harness::Ttl<crate::harness::Polling>,
        capabilities = [clock_steps, elections, inspect, leases, loss, rebirth, shutdown, tokens],
    }
}

mod pooled {
    sqlock_conformance::conformance! {
        harness = crate::harness::Ttl<crate::harness::Pooled>,
        capabilities = [clock_steps, elections, inspect, leases, loss, rebirth, shutdown, tokens],
    }
}

mod queueing {
    sqlock_conformance::conformance! {
        harness = crate::harness::Ttl<crate::harness::Queueing>,
        capabilities = [clock_steps, elections, inspect, leases, loss, rebirth, shutdown, tokens],
    }
}
