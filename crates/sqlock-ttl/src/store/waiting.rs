//! What a database does for those who wait.

use std::{sync::Arc, time::Duration};

use sqlock_core::{Queued, Whose};
use tokio::sync::{mpsc, oneshot};

/// What is done for those who wait, beside polling.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plan {
    /// What is written of those who wait.
    pub(crate) list: List,
    /// Whether the process can be told when a lease comes free.
    pub(crate) ears: Ears,
}

/// What is written of those who wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum List {
    /// Nothing: they poll.
    #[default]
    None,
    /// Those who listen, so that a release knows whether to tell anybody.
    Listeners,
    /// Everybody, in order.
    Queue,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ears {
    #[default]
    None,
    /// [`Store::listen`](super::Store::listen) gives what is heard.
    Given,
}

/// One who waits: written down, or shown to be alive.
#[derive(Debug, Clone)]
pub(crate) struct Join {
    pub(crate) waiter: Arc<str>,
    pub(crate) rows: Arc<[Arc<str>]>,
    pub(crate) priority: i16,
    /// The place that it had before, or a new one.
    pub(crate) ticket: Option<i64>,
    /// For how long it is taken to be alive.
    pub(crate) lives: Duration,
    pub(crate) hearing: Hearing,
    pub(crate) label: Option<Arc<str>>,
}

/// Whether a waiter can be woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hearing {
    Deaf,
    Listening,
}

/// One who does not wait any more.
#[derive(Debug, Clone)]
pub(crate) struct Leave {
    pub(crate) waiter: Arc<str>,
    pub(crate) rows: Arc<[Arc<str>]>,
}

/// The place of one who claims.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) waiter: Arc<str>,
    pub(crate) priority: i16,
    pub(crate) ticket: i64,
}

/// What is heard of those who release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// From now on every release of a row that somebody is known to wait for is heard.
    Listening,
    /// From now on nothing is, and something may have been missed.
    Deaf,
    /// A row with this [`row_hash`] came free.
    Free(u64),
}

/// A task that listens. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) heard: mpsc::UnboundedReceiver<Heard>,
    /// Closed by the drop, and never sent on.
    #[expect(dead_code, reason = "the task sees it close")]
    pub(crate) stop: oneshot::Sender<()>,
}

/// One in the queue of a row, as the database has it.
#[derive(Debug)]
pub(crate) struct QueueRow {
    pub(crate) waiter: String,
    pub(crate) queued: Queued,
}

impl QueueRow {
    pub(crate) fn into_queued(self, process: &str) -> Queued {
        let mut queued = self.queued;
        if self.waiter.starts_with(process) {
            queued.whose = Whose::Ours;
        }
        queued
    }
}

/// What names a row in notifications, which everybody who can connect may read. FNV-1a: it must be
/// the same in every process; two rows that share one wake each other's waiters for nothing.
pub(crate) fn row_hash(row: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    row.bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes of different versions must agree.
    #[test]
    fn the_hash_is_that_of_the_reference() {
        assert_eq!(row_hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(row_hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(row_hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
