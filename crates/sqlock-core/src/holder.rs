use std::{fmt, time::SystemTime};

use crate::Mode;

/// Who holds a lock, as far as the backend can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The mode in which it is held.
    pub mode: Mode,
    /// What the holder calls itself: a label, or the application name of its connection.
    pub label: Option<String>,
    /// The host from which it is connected.
    pub host: Option<String>,
    /// The server process, or the process on `host`, that holds it.
    pub pid: Option<i64>,
    /// Since when. For an advisory lock: since when its session or transaction is there, as the
    /// server does not record when it took the lock.
    pub since: Option<SystemTime>,
}

impl Holder {
    /// A holder of whom nothing but the mode is known; the fields are public.
    #[must_use]
    pub const fn unknown(mode: Mode) -> Self {
        Self {
            mode,
            label: None,
            host: None,
            pid: None,
            since: None,
        }
    }
}

/// In words: `nightly (pid 4711 from 10.0.0.7)`.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label.as_deref().unwrap_or("somebody"))?;
        match (self.pid, &self.host) {
            (Some(pid), Some(host)) => write!(f, " (pid {pid} from {host})"),
            (Some(pid), None) => write!(f, " (pid {pid})"),
            (None, Some(host)) => write!(f, " (from {host})"),
            (None, None) => Ok(()),
        }
    }
}
