//! What a server is, and what is in between, before its first lock.
//!
//! - A standby's advisory locks are its own.
//! - Some engines that speak PostgreSQL's protocol have no advisory locks, or grant them to everybody.
//! - Through a transaction pooler a session lock works by accident while nobody else is there, and
//!   fails under load.
//! - Some settings free locks early, or keep those of clients that vanished.
//!
//! [`session_locks`] and [`transaction_locks`] refuse what a backend must refuse, [`examine`] tells
//! all of it as a [`Report`], and [`recommend`] names the backend for it. All of it is asked in the
//! simple protocol, so that a transaction pooler answers too, and on connections that are closed
//! afterwards.

mod ask;
mod connection;
mod dangers;
mod engine;
mod examine;
mod identify;
mod pooler;
mod process;
mod recommend;
mod refine;
mod refuse;
mod report;
mod rounds;
mod self_test;
mod settings;
mod transaction;

pub use dangers::Danger;
pub use engine::Engine;
pub use examine::{examine, look, session_locks};
pub use recommend::{Backend, Recommendation, recommend};
pub use report::{Evidence, LockSupport, Pooler, Report, Role, ServerProcess, Version};
pub use settings::Setting;
pub use transaction::transaction_locks;

/// Whether a backend looks at the server before its first lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Preflight {
    /// It does, and refuses a server on which its locks would not be what they say.
    #[default]
    Check,
    /// It does not: the server and the way to it are known to be right.
    Skip,
}
