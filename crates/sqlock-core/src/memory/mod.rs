//! Locks in this process, for unit tests.
//!
//! [`MemoryBackend`] promises what the other backends promise, fairly and without a server, and
//! works with tokio's paused clock. Its [`Faults`] make it lose locks, fail and stall on purpose,
//! so that an application's handling of that can be tested:
//!
//! ```
//! use sqlock_core::{Error, Locks, LossCause, MemoryBackend};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
//! let backend = MemoryBackend::new();
//! let locks = Locks::new(backend.clone());
//!
//! let guard = locks.acquire("daily-report").await?;
//! backend.faults().lose("daily-report", LossCause::ConnectionClosed)?;
//! assert!(matches!(guard.check(), Err(Error::Lost { .. })));
//!
//! backend.faults().acquires().fail_next();
//! assert!(locks.acquire("daily-report").await.is_err_and(|error| error.is_retryable()));
//! # Ok(()) }
//! ```

mod backend;
mod faults;
mod grants;
mod held;
mod node;
mod queue;
mod switch;
mod table;

pub use backend::MemoryBackend;
pub use faults::{FaultSwitch, Faults};
pub use held::MemoryHeld;

const BACKEND: &str = "memory";
