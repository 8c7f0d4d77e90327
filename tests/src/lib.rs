//! Real PostgreSQL servers for the tests of sqlock.
//!
//! A test asks for a [`TestDatabase`], and gets one of its own on a server that all tests of its
//! process share:
//!
//! ```no_run
//! # async fn example() {
//! use sqlock_tests::TestDatabase;
//!
//! let database = TestDatabase::create().await;
//! // … connect to database.url(), take locks …
//! assert_eq!(database.advisory_locks().await, []);
//! # }
//! ```
//!
//! A test that stops, pauses or kills a server starts a private one, see [`PostgresServer::start`].
//!
//! # Where the server comes from
//!
//! 1. `SQLOCK_TEST_POSTGRES_URL`, the URL of a superuser on a server that runs already;
//! 2. PostgreSQL's own binaries: `initdb` on the `PATH`, in `pg_config --bindir`, or the newest
//!    under `/usr/lib/postgresql`; also for root, by way of an unprivileged account;
//! 3. a container, of the image `SQLOCK_TEST_POSTGRES_IMAGE` (`name:tag`), or the file `images` names one.
//!
//! `SQLOCK_TEST_POSTGRES_SOURCE` (`url`, `local` or `container`) leaves only the one. Where none is
//! to be had, the test fails and says what to install.
//!
//! # Poolers and standbys
//!
//! A [`PgBouncer`] stands in front of any server. It is the binary `pgbouncer` on the `PATH` or in
//! `/usr/sbin`, or else runs in a container of the image `SQLOCK_TEST_PGBOUNCER_IMAGE`;
//! `SQLOCK_TEST_PGBOUNCER_SOURCE` (`local` or `container`) leaves only the one; `odyssey` puts an
//! Odyssey of that image in its place. A [`Standby`] follows a private server, and needs PostgreSQL's
//! own binaries.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "support for tests: a panic with a message is how it reports"
)]

mod belief;
#[cfg(doctest)]
mod book;
mod database;
mod entrance;
mod eventually;
mod images;
mod keeper;
pub mod lab;
mod observe;
mod pooler;
mod schedules;
mod server;
pub mod signal;
mod standby;

pub use belief::Belief;
pub use database::TestDatabase;
pub use entrance::Entrance;
pub use eventually::{eventually, holds_within};
pub use observe::{AdvisoryLock, Backend};
pub use pooler::{PgBouncer, PgBouncerBuilder, Pool, PoolMode, PoolerClient};
pub use schedules::{Believers, Tally, run_schedules, schedules_or};
pub use server::{PostgresServer, Stop};
pub use standby::Standby;
