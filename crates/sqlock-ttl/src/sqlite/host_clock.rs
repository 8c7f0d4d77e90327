use std::time::{Duration, SystemTime};

use crate::clock::Moment;

/// A clock that all processes of this host share.
///
/// The wall clock steps, and a step would end or prolong leases. On Linux the time since boot does
/// not step, and the boot's own id tells the leases of an earlier boot, whose holders are gone.
/// Elsewhere the wall clock has to do.
#[derive(Debug, Clone)]
pub(super) struct HostClock {
    pub(super) boot: String,
    source: Source,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    SinceBoot,
    Wall,
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl HostClock {
    pub(super) fn new() -> Self {
        match std::fs::read_to_string(BOOT_ID) {
            Ok(boot) if cfg!(target_os = "linux") && !boot.trim().is_empty() => Self {
                boot: boot.trim().to_owned(),
                source: Source::SinceBoot,
            },
            _ => Self {
                boot: "wall".to_owned(),
                source: Source::Wall,
            },
        }
    }

    /// Microseconds since the boot, or since 1970.
    pub(super) fn now(&self) -> i64 {
        match self.source {
            Source::SinceBoot => Moment::now().micros(),
            Source::Wall => SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, micros),
        }
    }

    /// A moment of this clock as a time of day.
    pub(super) fn time_of_day(&self, moment: i64) -> SystemTime {
        let distance = moment.saturating_sub(self.now());
        let duration = Duration::from_micros(distance.unsigned_abs());
        let now = SystemTime::now();
        let time = if distance < 0 {
            now.checked_sub(duration)
        } else {
            now.checked_add(duration)
        };
        time.unwrap_or(now)
    }
}

pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_near() {
        let clock = HostClock::new();
        let second = Duration::from_secs(1);
        let later = clock.time_of_day(clock.now() + micros(second));
        let expected = SystemTime::now() + second;
        let off = expected
            .duration_since(later)
            .unwrap_or_else(|error| error.duration());
        assert!(off < second, "{off:?}");
    }
}
