//! A laboratory for faults: processes contend through the library while a nemesis does its worst,
//! and a checker reads what they wrote down.
//!
//! One run is made from one seed, which decides the faults and their times, and so can be made
//! again; what the processes then do is up to the machine. See `docs/src/reliability.md`.

mod belongings;
mod checker;
mod clock;
mod disk;
mod facts;
mod flaw;
mod journal;
mod nemesis;
mod proxy;
mod report;
mod run;
mod schedule;
mod statistics;
mod wall_clock;
mod worker;
mod workers;
mod world;

pub use checker::{Grant, Violation, check};
pub use facts::{Facts, Write};
pub use flaw::Flaw;
pub use journal::{Entry, Event};
pub use report::{Report, Result as BackendResult};
pub use run::{Outcome, run};
pub use schedule::{Fault, Schedule, Step};
pub use statistics::Statistics;
pub use worker::Worker;

use std::{fmt, str::FromStr, time::Duration};

/// What a run is made of, beside its seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Whose locks.
    pub backend: Backend,
    /// How the workers reach the server.
    pub way: Way,
    /// What is wrong with the workers on purpose.
    pub flaw: Option<Flaw>,
}

/// A backend of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Session-advisory.
    Session,
    /// Transaction-advisory.
    Xact,
    /// Leases in a table.
    Ttl,
}

/// How the workers reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By way of a proxy only.
    Direct,
    /// By way of a proxy and a PgBouncer in transaction mode.
    Pooled,
}

/// The leases of a run; a holder is paused for longer than this.
pub const TTL: Duration = Duration::from_millis(1500);
/// How often a session is heard of, and how long it may be silent.
pub const HEARTBEAT: Duration = Duration::from_millis(500);
/// How many keys are contended for.
pub const KEYS: i64 = 3;
/// For how long faults come.
pub const TROUBLE: Duration = Duration::from_secs(5);
/// For how long none come, in the end, at least; until each worker had a lock, at most.
pub const CALM: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Xact => "xact",
            Self::Ttl => "ttl",
        })
    }
}

impl FromStr for Backend {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        match name {
            "session" => Ok(Self::Session),
            "xact" => Ok(Self::Xact),
            "ttl" => Ok(Self::Ttl),
            _ => anyhow::bail!("no backend is called {name}"),
        }
    }
}
