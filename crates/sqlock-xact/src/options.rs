use std::time::Duration;

use sqlock_postgres::{Fencing, preflight::Preflight};
use sqlx::PgPool;

use crate::XactBackend;

/// Options of an [`XactBackend`].
///
/// ```no_run
/// # use std::time::Duration;
/// # use sqlock_core::Locks;
/// # use sqlock_xact::XactOptions;
/// # fn example(pool: sqlx::PgPool) {
/// let options = XactOptions::new().poll_interval(Duration::from_millis(100));
/// let locks = Locks::new(options.with_pool(pool));
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing until `with_pool` is called"]
pub struct XactOptions {
    pub(crate) poll: Duration,
    pub(crate) preflight: Preflight,
    pub(crate) fencing: Option<Fencing>,
}

impl Default for XactOptions {
    fn default() -> Self {
        Self {
            poll: Duration::from_millis(500),
            preflight: Preflight::Check,
            fencing: None,
        }
    }
}

impl XactOptions {
    /// The defaults, which each setter states.
    pub fn new() -> Self {
        Self::default()
    }

    /// The longest time between two tries of a waiter; the first ones come sooner. The default is
    /// 500 ms, and the least is 1 ms.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll = interval.max(Duration::from_millis(1));
        self
    }

    /// Whether the server is looked at before the first lock. The default is [`Preflight::Check`]:
    /// two round trips, which refuse a standby, and engines whose advisory locks of transactions
    /// are none.
    ///
    /// A standby is refused in any case, at every try: the pool may come to one later.
    pub fn preflight(mut self, preflight: Preflight) -> Self {
        self.preflight = preflight;
        self
    }

    /// Gives every lock a fencing token. The default is none: `guard.token()` is `None`.
    ///
    /// Its tables must be there, by [`Fencing::create`] or the shipped SQL. A token is drawn in the
    /// statement that takes the lock, and does not go back with the transaction. Before PostgreSQL 15
    /// that takes a round trip and a commit, on one connection that the backend makes for it, with the
    /// pool's options.
    ///
    /// A shared lock has a token too: above those of all exclusive holders before it, and below those
    /// of all after it.
    ///
    /// Where no token is to be had the lock is not held, and the error is
    /// [`Error::Fencing`](sqlock_core::Error::Fencing). The tables are looked at by the first lock.
    /// [`LockIn`](crate::LockIn) draws none.
    pub fn fencing(mut self, fencing: Fencing) -> Self {
        self.fencing = Some(fencing);
        self
    }

    /// A backend on this pool.
    #[must_use]
    pub fn with_pool(self, pool: PgPool) -> XactBackend {
        XactBackend::open(pool, self)
    }
}
