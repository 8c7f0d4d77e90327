//! Leases in a file of SQLite.

mod files;
mod harness;

use harness::Sqlite;

sqlock_conformance::conformance! {
    harness = Sqlite,
    capabilities = [inspect, loss, tokens],
}
