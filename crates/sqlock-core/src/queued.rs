use std::time::SystemTime;

/// One who waits for a lock, in a queue that all processes share.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued {
    /// The place in line: 1 is next.
    pub place: u32,
    /// Before whom it stands: before all with a lower one.
    pub priority: i16,
    /// Whether it waits in this process, by these locks.
    pub whose: Whose,
    /// What it calls itself.
    pub label: Option<String>,
    /// The host on which it waits.
    pub host: Option<String>,
    /// The process on that host.
    pub pid: Option<i64>,
    /// When it came, by the database's clock.
    pub since: SystemTime,
}

/// Whose place in a queue it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Whose {
    /// Of somebody who waits by the locks that were asked.
    Ours,
    /// Of somebody else: of another process, or of other locks in this one.
    Theirs,
}

impl Queued {
    /// One who stands at this place, and of whom little else is known; the fields are public.
    #[must_use]
    pub const fn new(place: u32, priority: i16, whose: Whose, since: SystemTime) -> Self {
        Self {
            place,
            priority,
            whose,
            label: None,
            host: None,
            pid: None,
            since,
        }
    }
}
