use std::fmt;

use super::{Danger, Engine, Setting};

/// What the server at the other end of a connection is, as far as locks are concerned.
///
/// Made by [`examine`](super::examine). With the feature `serde` it can be serialized.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Report {
    /// What the server says that it is.
    pub version: Version,
    /// What it is by that.
    pub engine: Engine,
    /// Primary or standby; not known where the engine cannot say.
    pub role: Option<Role>,
    /// What its locks of a session are worth.
    pub session_locks: LockSupport,
    /// What its locks of a transaction are worth.
    pub transaction_locks: LockSupport,
    /// What is between here and the server.
    pub pooler: Pooler,
    /// How many locks the server can hold, for all of its clients together.
    pub lock_capacity: Option<usize>,
    /// The settings that matter to locks, as this connection has them.
    pub settings: Vec<Setting>,
    /// Those among them that endanger locks.
    pub dangers: Vec<Danger>,
}

/// A server's version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Version {
    /// What `version()` answered.
    pub text: String,
    /// `server_version_num`, such as 150018.
    pub number: Option<u32>,
}

/// Whether a server takes writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Role {
    /// It does.
    Primary,
    /// A hot standby: its advisory locks are its own, and nobody else sees them.
    Standby,
}

/// What advisory locks of one kind are worth on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "is"))]
#[non_exhaustive]
pub enum LockSupport {
    /// They are PostgreSQL's own.
    Genuine,
    /// Another engine's, which were seen to exclude.
    Tested,
    /// There are none, or they exclude nobody.
    Absent {
        /// How that is known.
        reason: String,
    },
    /// Another engine's, which could not be tested.
    Untested {
        /// Why not.
        reason: String,
    },
}

/// What is between a client and the server process that answers it, as far as can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "is"))]
#[non_exhaustive]
pub enum Pooler {
    /// Every connection had a server process of its own: there is no pooler, or one in session
    /// mode.
    NotSeen,
    /// A pooler in session mode: a server process outlived its client, and served the next.
    Session,
    /// A pooler that lends server processes for a transaction, or for a statement.
    Transaction {
        /// What gave it away.
        evidence: Evidence,
    },
    /// A pooler that lends server processes for a statement, and refuses transactions.
    Statement {
        /// What gave it away.
        evidence: Evidence,
    },
    /// A balancer: two connections reached two servers, each with locks of its own.
    SeveralServers {
        /// The one.
        one: ServerProcess,
        /// The other.
        other: ServerProcess,
    },
    /// The look could not be made.
    NotLooked {
        /// Why not.
        reason: String,
    },
}

/// What shows that a connection has no server process of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "is"))]
#[non_exhaustive]
pub enum Evidence {
    /// One connection was answered by two server processes.
    Moved {
        /// The one that answered first.
        before: ServerProcess,
        /// The one that answered then.
        after: ServerProcess,
    },
    /// Two connections, both open, were answered by one server process.
    Shared {
        /// That process.
        process: ServerProcess,
    },
}

/// A process of a server, so named that two servers' processes are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ServerProcess {
    /// `pg_backend_pid()`.
    pub pid: i32,
    /// Where the server took the connection, `host:port`; empty for a Unix socket.
    pub address: String,
    /// When the server was started, in seconds since 1970, as the server writes it.
    pub server_started: String,
}

impl LockSupport {
    pub(super) fn is_untested(&self) -> bool {
        matches!(self, Self::Untested { .. })
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved { before, after } => {
                write!(
                    f,
                    "one connection was answered by server processes {before} and {after}"
                )
            }
            Self::Shared { process } => {
                write!(
                    f,
                    "two connections were answered by one server process, {process}"
                )
            }
        }
    }
}

impl fmt::Display for ServerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pid)?;
        if self.address.is_empty() {
            return Ok(());
        }
        write!(f, " of {}", self.address)
    }
}
