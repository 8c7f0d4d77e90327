//! When a lease ends for its holder.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use sqlock_core::{Expiry, LossCause};

/// A moment of a clock that never steps, and on Linux goes on while the machine is suspended:
/// `Instant` stops then, and a lease in the database does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    #[cfg(target_os = "linux")]
    pub(crate) fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        // the time since boot is not negative
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self(Duration::new(seconds, nanoseconds))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn now() -> Self {
        use std::{sync::LazyLock, time::Instant};
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        Self(START.elapsed())
    }

    /// Microseconds since the clock's beginning.
    #[cfg(feature = "sqlite")]
    pub(crate) fn micros(self) -> i64 {
        i64::try_from(self.0.as_micros()).unwrap_or(i64::MAX)
    }

    /// How long it is from now until then; zero where it has passed.
    pub(crate) fn remaining(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// The holder's own deadline: only an acknowledged renewal moves it.
///
/// It counts from before the request was sent, so that it passes before the database's own, which
/// counts from the moment when the row was written.
#[derive(Debug)]
pub(crate) struct Deadline(AtomicU64);

/// The part of the TTL that is kept back, for clocks that do not run at quite the same pace.
const MARGIN_DIVISOR: u32 = 20;

impl Deadline {
    /// The deadline of a lease of `ttl` that was asked for at `sent`.
    pub(crate) fn of(sent: Moment, ttl: Duration) -> Self {
        Self(AtomicU64::new(nanoseconds(Self::end(sent, ttl))))
    }

    /// A renewal that was sent then was acknowledged.
    pub(crate) fn renewed(&self, sent: Moment, ttl: Duration) {
        self.0
            .store(nanoseconds(Self::end(sent, ttl)), Ordering::Release);
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment(Duration::from_nanos(self.0.load(Ordering::Acquire)))
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.moment().remaining()
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.remaining().is_zero()
    }

    fn end(sent: Moment, ttl: Duration) -> Moment {
        sent + ttl.saturating_sub(ttl / MARGIN_DIVISOR)
    }
}

fn nanoseconds(moment: Moment) -> u64 {
    u64::try_from(moment.0.as_nanos()).unwrap_or(u64::MAX)
}

impl Expiry for Deadline {
    fn expired(&self) -> Option<LossCause> {
        self.has_passed().then_some(LossCause::Expired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holders_deadline_is_before_the_servers() {
        let sent = Moment::now();
        let deadline = Deadline::of(sent, Duration::from_secs(20));
        assert_eq!(deadline.moment(), sent + Duration::from_secs(19));
        assert!(!deadline.has_passed());
        assert_eq!(deadline.expired(), None);
    }

    #[test]
    fn it_passes_by_itself() {
        let deadline = Deadline::of(Moment::now(), Duration::ZERO);
        assert_eq!(deadline.expired(), Some(LossCause::Expired));
        deadline.renewed(Moment::now(), Duration::from_secs(1));
        assert_eq!(deadline.expired(), None);
    }

    #[test]
    fn centuries_do_not_overflow() {
        let deadline = Deadline::of(Moment::now(), Duration::MAX);
        assert!(!deadline.has_passed());
    }
}
