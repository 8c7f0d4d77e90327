//! Leases in a table, for [sqlock](https://docs.rs/sqlock): locks that work behind any pooler,
//! end by themselves when their holder is gone, and carry fencing tokens.
//!
//! In PostgreSQL (feature `postgres`, `TtlBackend`) they hold among all machines that reach the
//! server. In a file of SQLite (feature `sqlite`, `SqliteBackend`) they hold among the processes of
//! one host, containers included, and need no server; not on a network file system, and not for a
//! fleet.

#![deny(clippy::indexing_slicing)]

mod backend;
mod clock;
mod command;
mod held;
mod holder;
mod keeper;
mod options;
mod order;
mod row_name;
#[cfg(feature = "postgres")]
mod shared_table;
mod store;

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_backend;
#[cfg(feature = "postgres")]
mod protocol;

#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_backend;

pub use held::TtlHeld;
pub use holder::LeaseRecord;
pub use options::LeaseOptions;
pub use order::{AnyOrder, InOrder, Order};
#[cfg(feature = "postgres")]
pub use postgres_backend::{TtlBackend, TtlOptions};
#[cfg(feature = "postgres")]
pub use protocol::Protocol;
#[cfg(feature = "postgres")]
pub use shared_table::{SharedTable, SharedTableBackend};
#[cfg(feature = "sqlite")]
pub use sqlite_backend::{SqliteBackend, SqliteOptions};
