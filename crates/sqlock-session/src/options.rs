use std::time::Duration;

use sqlock_core::{Error, Result};
use sqlock_postgres::{Fencing, connect_options, plain_options, preflight::Preflight};
use sqlx::postgres::PgConnectOptions;

use crate::SessionBackend;

/// Options of a [`SessionBackend`].
///
/// ```no_run
/// # use std::time::Duration;
/// # use sqlock_session::SessionOptions;
/// # async fn example() -> sqlock_core::Result<()> {
/// let backend = SessionOptions::new()
///     .application_name("billing")
///     .poll_interval(Duration::from_secs(2))
///     .connect("postgres://billing@db.internal/billing")
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing until `connect` is called"]
pub struct SessionOptions {
    pub(crate) application_name: Option<String>,
    pub(crate) lock_budget: Option<usize>,
    pub(crate) lock_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) reconnect_limit: Duration,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) timing: Timing,
    pub(crate) preflight: Preflight,
    pub(crate) fencing: Option<Fencing>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Heartbeat {
    pub(crate) interval: Duration,
    pub(crate) limit: Duration,
}

/// The pace of waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Waiters look at least this often, whatever they are told.
    pub(crate) poll: Duration,
    /// How long a key is left alone where another session waits for it.
    pub(crate) stand_back: Duration,
    /// For how long the tasks of this process pass a lock on among themselves before the server is
    /// asked whether another session waits.
    pub(crate) look_again: Duration,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            application_name: None,
            lock_budget: None,
            lock_timeout: Duration::from_millis(250),
            connect_timeout: Duration::from_secs(5),
            reconnect_limit: Duration::from_secs(30),
            heartbeat: Heartbeat {
                interval: Duration::from_secs(5),
                limit: Duration::from_secs(5),
            },
            timing: Timing {
                poll: Duration::from_millis(500),
                stand_back: Duration::from_millis(5),
                look_again: Duration::from_millis(5),
            },
            preflight: Preflight::Check,
            fencing: None,
        }
    }
}

impl SessionOptions {
    /// The defaults, which each setter states.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the connection is called in `pg_stat_activity`, and with it the holder of its locks.
    /// The default is what the URL or the environment says, or else `sqlock`.
    pub fn application_name(mut self, name: impl Into<String>) -> Self {
        self.application_name = Some(name.into());
        self
    }

    /// The most locks that this process takes on the server, those that waiting needs included.
    /// The default is a quarter of what the server can hold: a client that uses up the server's
    /// lock memory stops new connections for everybody.
    pub fn lock_budget(mut self, locks: usize) -> Self {
        self.lock_budget = Some(locks);
        self
    }

    /// How long the session waits for a lock of the server's own, which it does where another
    /// application's commit with a `NOTIFY` is stuck. The default is 250 ms.
    pub fn lock_timeout(mut self, limit: Duration) -> Self {
        self.lock_timeout = limit;
        self
    }

    /// How long one attempt to connect may take. The default is 5 s.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// For how long those who wait for a lock outlast a server that cannot be reached. The default
    /// is 30 s. Those who only try are told after one attempt.
    pub fn reconnect_limit(mut self, limit: Duration) -> Self {
        self.reconnect_limit = limit;
        self
    }

    /// How often a session that holds locks asks whether the server is still there, and for how
    /// long it waits for any answer before it gives its locks up as lost. The default is 5 s each.
    ///
    /// Their sum must be below the time after which the server frees the locks of a client that
    /// vanished without a word: the session sets that to three times the sum of both.
    pub fn heartbeat(mut self, interval: Duration, limit: Duration) -> Self {
        self.heartbeat = Heartbeat { interval, limit };
        self
    }

    /// The longest time between two looks of a waiter. The default is 500 ms. A release by sqlock
    /// wakes waiters at once; this is the net for holders that die and for locks freed by plain
    /// SQL.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.timing.poll = interval;
        self
    }

    /// How long this process leaves a key alone where another session waits for it, and how long
    /// its tasks pass a lock on among themselves before they ask. The default is 5 ms each.
    pub fn fairness(mut self, stand_back: Duration, look_again: Duration) -> Self {
        self.timing.stand_back = stand_back;
        self.timing.look_again = look_again;
        self
    }

    /// Whether the server, and the way to it, are looked at before the first session. The default is
    /// [`Preflight::Check`]: some thirty round trips on two connections, which refuse transaction
    /// poolers, balancers over several servers and engines without real advisory locks, and warn of
    /// settings that endanger locks. Where the server or a pooler gives out no second connection,
    /// the look is not made, and a warning says so. Later sessions are not looked at so.
    ///
    /// A standby is refused in any case.
    pub fn preflight(mut self, preflight: Preflight) -> Self {
        self.preflight = preflight;
        self
    }

    /// Gives every lock a fencing token. The default is none: `guard.token()` is `None`.
    ///
    /// Its tables must be there, by [`Fencing::create`] or the shipped SQL. A token is drawn in the
    /// statement that takes the lock, and where tasks of this process pass a lock on, in one that
    /// they would do without otherwise.
    ///
    /// A shared lock has a token too: above those of all exclusive holders before it, and below those
    /// of all after it. Shared holders that overlap are in no order among themselves, and those of one
    /// process may have the same.
    ///
    /// Where no token is to be had the lock is not held, and the error is [`Error::Fencing`].
    pub fn fencing(mut self, fencing: Fencing) -> Self {
        self.fencing = Some(fencing);
        self
    }

    /// Connects to the server of this URL, `postgres://user:password@host:port/database`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] where the URL or another option cannot be,
    /// [`Error::Unavailable`] where the server cannot be reached, [`Error::Standby`] where it is
    /// a standby, [`Error::PoolerRefused`] where a transaction pooler is in between,
    /// [`Error::UnsupportedServer`] where the server has no real advisory locks, [`Error::Fencing`]
    /// where tokens are asked for and cannot be had, and [`Error::Backend`] where it refuses the
    /// connection.
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is closed.
    pub async fn connect(self, url: &str) -> Result<SessionBackend> {
        let options = connect_options(url)?;
        self.connect_with(options).await
    }

    /// Connects with options of sqlx.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is closed.
    pub async fn connect_with(self, options: PgConnectOptions) -> Result<SessionBackend> {
        self.check()?;
        SessionBackend::open(self, plain_options(options)).await
    }

    fn check(&self) -> Result<()> {
        let positive = [
            ("lock_timeout", self.lock_timeout),
            ("connect_timeout", self.connect_timeout),
            ("heartbeat interval", self.heartbeat.interval),
            ("heartbeat limit", self.heartbeat.limit),
            ("poll_interval", self.timing.poll),
        ];
        for (option, value) in positive {
            if value < Duration::from_millis(1) || value > Duration::from_secs(86_400) {
                return Err(Error::InvalidOption {
                    option,
                    reason: format!("{value:?} is not between a millisecond and a day"),
                });
            }
        }
        Ok(())
    }
}
