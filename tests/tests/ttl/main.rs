//! Leases in a table of a real PostgreSQL.

mod harness;

use harness::Ttl;

sqlock_conformance::conformance! {
    harness = Ttl,
    capabilities = [inspect, loss, tokens],
}
