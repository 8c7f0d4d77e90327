//! Transaction-advisory locks on PostgreSQL, for [sqlock](https://docs.rs/sqlock): the lock and the
//! work are one transaction, and end together.
//!
//! ```no_run
//! use sqlock_core::Locks;
//! use sqlock_xact::XactBackend;
//!
//! # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! let locks = Locks::new(XactBackend::new(pool));
//! let mut guard = locks.acquire("daily-report").await?;
//! sqlx::raw_sql("insert into report default values")
//!     .execute(guard.connection())
//!     .await?;
//! guard.commit().await?; // a drop rolls both back
//! # Ok(()) }
//! ```

mod acquire;
mod backend;
mod held;
mod outcome;
mod register;
mod statement;

pub use backend::{XactBackend, XactOptions};
pub use held::XactHeld;

/// The backend's name in errors and events.
pub(crate) const BACKEND: &str = "xact";
