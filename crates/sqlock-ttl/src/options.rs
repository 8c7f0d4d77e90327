use std::time::Duration;

use sqlock_core::{Error, Request, Result};

/// How leases are kept.
///
/// ```
/// # use std::time::Duration;
/// # use sqlock_ttl::LeaseOptions;
/// let options = LeaseOptions::new()
///     .ttl(Duration::from_secs(60))
///     .poll_interval(Duration::from_millis(250));
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing until they are given to a backend"]
pub struct LeaseOptions {
    pub(crate) ttl: Duration,
    pub(crate) hold_at_least: Duration,
    pub(crate) poll: Duration,
    pub(crate) statement_limit: Duration,
    pub(crate) outage_limit: Duration,
    pub(crate) waiter_ttl: Duration,
}

/// Shorter than this a lease could not be renewed in time on a busy machine.
const SHORTEST_TTL: Duration = Duration::from_millis(50);
const LONGEST_TTL: Duration = Duration::from_secs(100 * 366 * 86_400);

impl Default for LeaseOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(30),
            hold_at_least: Duration::ZERO,
            poll: Duration::from_millis(500),
            statement_limit: Duration::from_secs(5),
            outage_limit: Duration::from_secs(30),
            waiter_ttl: Duration::from_secs(10),
        }
    }
}

impl LeaseOptions {
    /// The defaults, which each setter states.
    pub fn new() -> Self {
        Self::default()
    }

    /// For how long a lease is valid unless it is renewed, which happens by itself at a third of
    /// it: the time after which another gets the lock of a holder that died. The default is 30 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// For how long a lease stays taken from its acquisition on, even if it is released before.
    /// The default is no longer than it is held.
    pub fn hold_at_least(mut self, duration: Duration) -> Self {
        self.hold_at_least = duration;
        self
    }

    /// The longest time between two looks of a waiter; the first ones come sooner. The default is
    /// 500 ms.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// How long one transaction may take before its connection is closed. The default is 5 s.
    pub fn statement_limit(mut self, limit: Duration) -> Self {
        self.statement_limit = limit;
        self
    }

    /// For how long those who wait for a lock outlast a database that cannot be reached. The
    /// default is 30 s. Those who only try are told after one attempt.
    pub fn outage_limit(mut self, limit: Duration) -> Self {
        self.outage_limit = limit;
        self
    }

    /// For how long a waiter that gives no sign of life keeps its place in the queue, or is taken
    /// to be one who listens: the time after which those behind one that died go on. Signs of life
    /// come at a third of it. The default is 10 s.
    pub fn waiter_ttl(mut self, ttl: Duration) -> Self {
        self.waiter_ttl = ttl;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_ttl(self.ttl)?;
        check_range("hold_at_least", self.hold_at_least, Duration::ZERO)?;
        check_range("waiter_ttl", self.waiter_ttl, SHORTEST_TTL)?;
        check_range("poll_interval", self.poll, Duration::from_millis(1))?;
        check_range(
            "statement_limit",
            self.statement_limit,
            Duration::from_millis(1),
        )
    }
}

/// A time to live that a lease can have.
pub(crate) fn check_ttl(ttl: Duration) -> Result<()> {
    check_range("ttl", ttl, SHORTEST_TTL)
}

/// What a request asks for.
pub(crate) fn check_request(request: &Request) -> Result<()> {
    let terms = request.lease();
    if let Some(ttl) = terms.ttl {
        check_ttl(ttl)?;
    }
    if let Some(duration) = terms.hold_at_least {
        check_range("hold_at_least", duration, Duration::ZERO)?;
    }
    check_text("label", request.label(), LONGEST_LABEL)?;
    check_text("payload", terms.payload.as_deref(), LONGEST_PAYLOAD)
}

/// What others can read, by one look.
const LONGEST_LABEL: usize = 512;
const LONGEST_PAYLOAD: usize = 65_536;

fn check_text(option: &'static str, text: Option<&str>, longest: usize) -> Result<()> {
    let reason = match text {
        Some(text) if text.len() > longest => {
            format!(
                "it has {} bytes and at most {longest} are allowed",
                text.len()
            )
        }
        Some(text) if text.contains('\0') => "it contains a NUL character".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::InvalidOption { option, reason })
}

fn check_range(option: &'static str, value: Duration, shortest: Duration) -> Result<()> {
    if (shortest..=LONGEST_TTL).contains(&value) {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option,
        reason: format!("{value:?} is not between {shortest:?} and a hundred years"),
    })
}
