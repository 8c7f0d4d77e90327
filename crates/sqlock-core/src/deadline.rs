use std::{future::Future, time::Duration};

use tokio::time::{Instant, timeout_at};

/// How long a caller is willing to wait for a lock.
///
/// It becomes a [`Deadline`] when the call starts, and that one deadline covers the whole of it:
/// queueing, connecting, retrying.
///
/// ```
/// use std::time::Duration;
/// use sqlock_core::Wait;
///
/// let budget: Wait = Duration::from_secs(5).into();
/// assert_eq!(budget, Wait::at_most(Duration::from_secs(5)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(Limit);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    AtMost(Duration),
    Until(Instant),
    Forever,
}

impl Wait {
    /// For no longer than `duration`.
    #[must_use]
    pub const fn at_most(duration: Duration) -> Self {
        Self(Limit::AtMost(duration))
    }

    /// Until `instant`.
    #[must_use]
    pub fn until(instant: impl Into<Instant>) -> Self {
        Self(Limit::Until(instant.into()))
    }

    /// For as long as it takes.
    #[must_use]
    pub const fn forever() -> Self {
        Self(Limit::Forever)
    }

    /// For backends: the deadline of a call that starts now.
    #[must_use]
    pub fn start(self) -> Deadline {
        Deadline(match self.0 {
            // a duration too long to add is forever
            Limit::AtMost(duration) => Instant::now().checked_add(duration),
            Limit::Until(instant) => Some(instant),
            Limit::Forever => None,
        })
    }
}

impl From<Duration> for Wait {
    fn from(duration: Duration) -> Self {
        Self::at_most(duration)
    }
}

/// When an acquire gives up, errors and reconnections included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// The instant, or `None` where the caller waits for as long as it takes.
    #[must_use]
    pub const fn instant(&self) -> Option<Instant> {
        self.0
    }

    /// The time that is left, or `None` where there is no limit.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.0
            .map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether time has run out.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.remaining() == Some(Duration::ZERO)
    }

    /// What `future` returns, or `None` where time ran out first.
    ///
    /// # Cancel safety
    ///
    /// As safe as `future`: it is dropped when time runs out.
    pub async fn bound<F: Future>(&self, future: F) -> Option<F::Output> {
        match self.0 {
            None => Some(future.await),
            Some(at) => timeout_at(at, future).await.ok(),
        }
    }
}
