use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock that all processes of the machine share, and that only goes on.
pub(super) fn now() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
