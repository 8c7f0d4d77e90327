//! What a database does for leases.

mod waiting;

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlock_core::{FencingToken, Result};

use crate::{LeaseRecord, holder::HolderInfo};
pub(crate) use waiting::{
    Ears, Heard, Hearing, Join, Leave, List, Listening, Place, Plan, QueueRow, row_hash,
};

/// Who took a lease: random for each acquisition, never a host or a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner(pub(crate) Arc<str>);

impl Owner {
    pub(crate) fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()).into())
    }
}

/// One row of a request to take leases: all rows with the same `request`, or none.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) request: usize,
    pub(crate) row: Arc<str>,
    pub(crate) owner: Owner,
    pub(crate) ttl: Duration,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) payload: Option<Arc<str>>,
    /// Where it stands in line. Without one, everybody who waits is before it.
    pub(crate) place: Option<Place>,
}

/// A lease that is held, as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LeaseId {
    pub(crate) row: Arc<str>,
    pub(crate) owner: Owner,
}

/// A lease to be given back.
#[derive(Debug, Clone)]
pub(crate) struct GiveBack {
    pub(crate) lease: LeaseId,
    /// Counted from the acquisition: until then it stays taken, by nobody.
    pub(crate) hold_at_least: Duration,
    /// The same, counted from now.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "SQLite's rows say since when they are held")
    )]
    pub(crate) hold_on: Duration,
}

/// A lease to be prolonged.
#[derive(Debug, Clone)]
pub(crate) struct Renewal {
    pub(crate) lease: LeaseId,
    pub(crate) ttl: Duration,
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// It is ours, with the token of the acquisition where the table keeps one.
    Granted(Option<FencingToken>),
    /// Somebody has it, for so long unless it is renewed. With nothing remaining, it is free and
    /// another key of the request is not, or somebody is at the row at this moment.
    Refused { remaining: Duration },
    /// It is free, and somebody who waits for it is first, for so long unless they show that they
    /// are alive.
    Queued { remaining: Duration },
    /// The row went away between two looks: to be claimed again at once.
    Vanished,
}

/// What became of a lease that was to be renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewed {
    /// It is ours for another TTL.
    Done,
    /// Somebody is at the row at this moment: to be tried again soon.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "SQLite locks files")
    )]
    Busy,
    /// It ran out before it was renewed.
    Expired,
    /// It ran out, and another has it.
    TakenOver,
    /// The row is not there any more.
    Removed,
}

/// What became of a lease that was to be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivenBack {
    Done,
    /// It had run out, and another has had it since.
    NotOurs,
    /// Somebody is at the row at this moment: to be tried again soon.
    Busy,
}

/// What one transaction is to do, in this order.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) join: Vec<Join>,
    pub(crate) leave: Vec<Leave>,
    pub(crate) give_back: Vec<GiveBack>,
    pub(crate) claims: Vec<Claim>,
}

/// The answers to [`Store::exchange`], in the order of the questions.
#[derive(Debug, Default)]
pub(crate) struct Exchanged {
    /// The tickets of those who joined.
    pub(crate) tickets: Vec<Option<i64>>,
    pub(crate) given_back: Vec<GivenBack>,
    pub(crate) claimed: Vec<Claimed>,
}

/// A table of leases. Every call is one transaction, and after an error the caller does not know
/// whether it was committed.
#[async_trait]
pub(crate) trait Store: Debug + Send + Sync + 'static {
    /// The backend's name in errors and events.
    fn name(&self) -> &'static str;

    /// What it does for those who wait.
    fn plan(&self) -> Plan {
        Plan::default()
    }

    /// Gives leases back and takes others.
    async fn exchange(&self, exchange: &Exchange, holder: &HolderInfo) -> Result<Exchanged>;

    /// Prolongs leases, on a connection that `exchange` cannot starve.
    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>>;

    /// Wakes those who listen for these rows, where a row is free. Must be called after the
    /// transaction that freed them: who joins after this look sees that they are free.
    async fn wake(&self, _rows: &[Arc<str>]) -> Result<()> {
        Ok(())
    }

    /// Starts to listen, on the runtime that is current.
    fn listen(&self) -> Option<Listening> {
        None
    }

    /// Whether what was said of listening holds.
    #[cfg(feature = "postgres")]
    async fn check_listening(&self) -> Result<()> {
        Ok(())
    }

    /// Those who wait for this row, the first in line first.
    async fn queue(&self, _row: &str) -> Result<Vec<QueueRow>> {
        Ok(Vec::new())
    }

    /// The leases of these rows, or all that are held.
    async fn list(&self, row: Option<&str>) -> Result<Vec<LeaseRecord>>;

    /// Removes rows that nobody has used for so long.
    async fn sweep(&self, unused_for: Duration) -> Result<u64>;

    /// Creates the table where it is missing, and checks its shape where it is not.
    #[cfg(feature = "postgres")]
    async fn create_table(&self) -> Result<()>;

    /// Closes the connections.
    async fn close(&self);
}

/// An answer that is none.
#[cfg(feature = "postgres")]
pub(crate) fn unexpected(backend: &'static str, what: &str) -> sqlock_core::Error {
    sqlock_core::Error::Backend {
        backend,
        operation: "read an answer",
        source: format!("unexpected answer: {what}").into(),
    }
}
