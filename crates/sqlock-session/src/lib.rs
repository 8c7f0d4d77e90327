//! Session-advisory locks on PostgreSQL, for [sqlock](https://docs.rs/sqlock): many locks, and
//! many waiting tasks, on one connection.
//!
//! ```no_run
//! use sqlock_core::Locks;
//! use sqlock_session::SessionBackend;
//!
//! # async fn write_report() {}
//! # async fn example() -> sqlock_core::Result<()> {
//! let locks = Locks::new(SessionBackend::connect("postgres://app@db.internal/app").await?);
//! let Some(guard) = locks.try_acquire("daily-report").await? else { return Ok(()) };
//! guard.protect(write_report()).await?;
//! guard.release().await?;
//! # Ok(()) }
//! ```

#![deny(clippy::indexing_slicing)]

mod backend;
mod batch;
mod command;
mod held;
mod inspect;
mod link;
mod notify;
mod options;
mod outage;
mod owner;
mod preflight;
mod reconnect;
mod server_lock;
mod settings;
mod statement;
mod table;

pub use backend::SessionBackend;
pub use held::SessionHeld;
pub use options::SessionOptions;
#[doc(no_inline)]
pub use sqlock_postgres::{Fencing, preflight::Preflight};

/// The backend's name in errors and events.
pub(crate) const BACKEND: &str = "session";
