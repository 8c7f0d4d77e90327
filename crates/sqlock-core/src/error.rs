use std::time::Duration;

use crate::{FencingFault, InvalidKey, LockKey, LossCause};

/// A [`std::result::Result`] whose error is [`Error`] unless told otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whatever lies under an [`Error`].
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// What can go wrong with a lock.
///
/// That somebody else holds it is not an error: `try_acquire` gives `None`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The value cannot name a lock. Nothing was sent to the server.
    #[error("invalid lock key")]
    InvalidKey(#[from] InvalidKey),

    /// The budget ran out while others held the lock. It is not held, and not waited for.
    #[error("gave up waiting for lock \"{key}\" after {waited:?}")]
    Timeout {
        /// The lock; the first of several.
        key: LockKey,
        /// How long it was waited for.
        waited: Duration,
    },

    /// The lock was held and is not any more. Another may hold it now.
    #[error("lock \"{key}\" was lost: {cause}")]
    Lost {
        /// The lock; the first of several.
        key: LockKey,
        /// Why.
        cause: LossCause,
    },

    /// The lock's transaction had failed, so that nothing of it was committed.
    #[error("the transaction of lock \"{key}\" was aborted; nothing was committed")]
    Aborted {
        /// The lock; the first of several.
        key: LockKey,
        /// The error that the server gave.
        source: BoxError,
    },

    /// The connection was lost while the server was committing: the work may be there or not.
    #[error("it is unknown whether the transaction of lock \"{key}\" was committed")]
    CommitUnknown {
        /// The lock; the first of several.
        key: LockKey,
        /// The error of the connection.
        source: BoxError,
    },

    /// The connection is not in a transaction, and a lock of its own would be gone at once.
    #[error("the connection is not in a transaction, with which the lock would last; begin one")]
    NoTransaction,

    /// What the transaction sees can be older than the lock, so that it may not see what the last
    /// holder wrote.
    #[error(
        "at isolation level {level} a transaction may not see what the last holder of the lock \
         wrote; use read committed, or allow it by the lock's options"
    )]
    StaleSnapshot {
        /// The transaction's isolation level, as the server calls it.
        level: String,
    },

    /// The connection goes through a transaction pooler, where session locks are unsafe.
    #[error(
        "this connection goes through a transaction pooler, where a session lock is unsafe \
         ({evidence}); connect directly, use the pooler's session mode, or use a backend that is \
         made for poolers: xact or ttl"
    )]
    PoolerRefused {
        /// What gave it away, and which server processes may still hold something.
        evidence: String,
    },

    /// The server has no advisory locks, or some that exclude nobody.
    #[error("the server cannot keep these locks ({engine}): {reason}")]
    UnsupportedServer {
        /// What the server is.
        engine: String,
        /// What is wrong with its locks, and what to do.
        reason: String,
    },

    /// The server is a hot standby, whose advisory locks nobody else sees.
    #[error("the server is a standby, whose locks are its own; connect to the primary")]
    Standby,

    /// Taking this lock would use more of the server's lock memory than this process is allowed.
    #[error(
        "this process holds {in_use} server locks and its budget is {budget}; \
         raise {setting} on the server, or the budget in the backend's options"
    )]
    LockBudget {
        /// Locks that this process has, or is about to have, on the server.
        in_use: usize,
        /// The most that it takes.
        budget: usize,
        /// The server setting from which the budget was computed.
        setting: &'static str,
    },

    /// The server's lock memory is used up, by whomever. Nothing of this request is held.
    #[error("the server is out of lock memory; raise {setting} or find who holds so many locks")]
    LockMemory {
        /// The server setting that bounds it.
        setting: &'static str,
        /// The error that the server gave.
        source: BoxError,
    },

    /// Fencing tokens were asked for, and none is to be had. Nothing of this request is held.
    #[error("{backend}: no fencing token: {fault}")]
    Fencing {
        /// The backend's name.
        backend: &'static str,
        /// Why, and what to do.
        fault: FencingFault,
        /// The error that the server gave, where it gave one.
        source: Option<BoxError>,
    },

    /// The server broke a deadlock by ending this request. It can be repeated.
    #[error("the server chose this request as the victim of a deadlock")]
    Deadlock {
        /// The error that the server gave.
        source: BoxError,
    },

    /// The server cannot be reached, or the connection broke. It can be repeated.
    #[error("{backend}: the server is unavailable")]
    Unavailable {
        /// The backend's name.
        backend: &'static str,
        /// What the attempt met with.
        source: BoxError,
    },

    /// The backend was shut down and takes no more requests.
    #[error("{backend}: the backend was shut down")]
    ShutDown {
        /// The backend's name.
        backend: &'static str,
    },

    /// An option of the backend has a value that cannot be.
    #[error("option {option}: {reason}")]
    InvalidOption {
        /// The option's name.
        option: &'static str,
        /// What is wrong, and what would be right.
        reason: String,
    },

    /// Any other failure of a backend. Nothing of this request is held.
    #[error("{backend}: {operation} failed")]
    Backend {
        /// The backend's name.
        backend: &'static str,
        /// What it was doing.
        operation: &'static str,
        /// What went wrong.
        source: BoxError,
    },
}

impl Error {
    /// Whether the same request may succeed if it is made again, without anything being changed.
    ///
    /// ```
    /// # use sqlock_core::Error;
    /// let error = Error::Unavailable { backend: "session", source: "connection refused".into() };
    /// assert!(error.is_retryable());
    /// assert!(!Error::Standby.is_retryable());
    /// ```
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Timeout { .. }
            | Self::Lost { .. }
            | Self::Deadlock { .. }
            | Self::LockBudget { .. }
            | Self::LockMemory { .. }
            | Self::Unavailable { .. } => true,
            Self::InvalidKey(_)
            | Self::Aborted { .. }
            | Self::CommitUnknown { .. }
            | Self::NoTransaction
            | Self::StaleSnapshot { .. }
            | Self::PoolerRefused { .. }
            | Self::UnsupportedServer { .. }
            | Self::Standby
            | Self::ShutDown { .. }
            | Self::Fencing { .. }
            | Self::InvalidOption { .. }
            | Self::Backend { .. } => false,
        }
    }
}
