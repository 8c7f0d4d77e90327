use std::{
    fs,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::clock::Moment;

/// A clock that all processes of this host share.
///
/// The wall clock steps, and a step would end or prolong leases. On Linux the time since boot does
/// not step, and the boot's own id tells the leases of an earlier boot, whose holders are gone.
/// Elsewhere the wall clock has to do. The file says which of the two its leases go by: to each of
/// two processes that disagreed, the other's leases would have ended.
#[derive(Debug, Clone)]
pub(crate) struct HostClock {
    pub(super) boot: Arc<str>,
    source: Source,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    /// A container may have its own beginning of the clock, so many microseconds before the boot.
    SinceBoot {
        ahead: i64,
    },
    Wall,
}

pub(super) const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const BOOT: &str = "boot";
const WALL: &str = "wall";

impl HostClock {
    /// The best that this process can read.
    pub(super) fn best() -> Self {
        Self::since_boot().unwrap_or_else(Self::wall)
    }

    /// The clock of this kind, where this process can read it.
    pub(super) fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            BOOT => Self::since_boot(),
            WALL => Some(Self::wall()),
            _ => None,
        }
    }

    /// As the file has it.
    pub(super) fn kind(&self) -> &'static str {
        match self.source {
            Source::SinceBoot { .. } => BOOT,
            Source::Wall => WALL,
        }
    }

    fn since_boot() -> Option<Self> {
        let id = fs::read_to_string(BOOT_ID).ok()?;
        let id = id.trim();
        if cfg!(not(target_os = "linux")) || id.is_empty() {
            return None;
        }
        // older kernels have no time namespaces, and no such file
        let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        Some(Self {
            boot: id.into(),
            source: Source::SinceBoot {
                ahead: offset_of_boottime(&offsets),
            },
        })
    }

    fn wall() -> Self {
        Self {
            boot: WALL.into(),
            source: Source::Wall,
        }
    }

    /// Microseconds since the boot, or since 1970.
    pub(super) fn now(&self) -> i64 {
        match self.source {
            Source::SinceBoot { ahead } => Moment::now().micros().saturating_sub(ahead),
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

/// A line a clock: its name, seconds, nanoseconds
/// ([time_namespaces(7)](https://man7.org/linux/man-pages/man7/time_namespaces.7.html)).
fn offset_of_boottime(offsets: &str) -> i64 {
    let line = offsets
        .lines()
        .find_map(|line| line.strip_prefix("boottime"));
    let mut numbers = line
        .unwrap_or_default()
        .split_whitespace()
        .map(|number| number.parse::<i64>().unwrap_or_default());
    let (seconds, nanoseconds) = (numbers.next(), numbers.next());
    let seconds = seconds.unwrap_or_default().saturating_mul(1_000_000);
    seconds.saturating_add(nanoseconds.unwrap_or_default() / 1_000)
}

pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_near() {
        for clock in [HostClock::best(), HostClock::wall()] {
            let second = Duration::from_secs(1);
            let later = clock.time_of_day(clock.now() + micros(second));
            let expected = SystemTime::now() + second;
            let off = expected
                .duration_since(later)
                .unwrap_or_else(|error| error.duration());
            assert!(off < second, "{off:?}");
        }
    }

    #[test]
    fn a_clock_is_found_by_its_kind() {
        for kind in [BOOT, WALL] {
            let clock = HostClock::of_kind(kind);
            assert!(clock.is_none_or(|clock| clock.kind() == kind));
        }
        assert!(HostClock::of_kind("sundial").is_none());
    }

    #[test]
    fn a_time_namespace_is_seen_through() {
        let offsets = "monotonic           0         0\nboottime       -86400 500000000\n";
        assert_eq!(offset_of_boottime(offsets), -86_399_500_000);
        assert_eq!(offset_of_boottime(""), 0);
    }
}
