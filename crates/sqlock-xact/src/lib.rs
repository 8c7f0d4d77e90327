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
//!
//! Or in a transaction of your own:
//!
//! ```no_run
//! # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! let mut transaction = pool.begin().await?;
//! if !sqlock_xact::try_lock_in(&mut transaction, "invoice/42").await? {
//!     return Ok(()); // another has it
//! }
//! sqlx::raw_sql("update invoice set paid = true where id = 42")
//!     .execute(&mut *transaction)
//!     .await?;
//! transaction.commit().await?; // and the lock is free
//! # Ok(()) }
//! ```

#![deny(clippy::indexing_slicing)]

mod acquire;
mod backend;
mod ending;
mod held;
mod lock_in;
mod options;
mod outcome;
mod progress;
mod register;
mod source;
mod statement;
mod tokens;

pub use backend::XactBackend;
pub use held::XactHeld;
pub use lock_in::{
    LockIn, lock_all_in, lock_all_shared_in, lock_in, lock_shared_in, try_lock_all_in,
    try_lock_all_shared_in, try_lock_in, try_lock_shared_in,
};
pub use options::XactOptions;
#[doc(no_inline)]
pub use sqlock_postgres::{Fencing, preflight::Preflight};

/// The backend's name in errors and events.
pub(crate) const BACKEND: &str = "xact";
