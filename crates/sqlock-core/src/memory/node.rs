use std::sync::atomic::{AtomicBool, Ordering};

use super::switch::Switch;

/// One of the clients that contend for a table's locks.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) acquires: Switch,
    pub(super) releases: Switch,
    closed: AtomicBool,
}

impl Node {
    /// Called with the table locked, so that no request slips in behind it.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Called with the table locked.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Lets go of whatever is stalled.
    pub(super) fn heal(&self) {
        self.acquires.heal();
        self.releases.heal();
    }
}
