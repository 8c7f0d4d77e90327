//! Exit codes: those of `sysexits.h` and of the shells, and one of our own.

use std::{error::Error as StdError, fmt, process::ExitCode};

use rustix::process::Signal;
use sqlock::Error;

/// What `sqlock` exits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u8);

impl Code {
    pub(crate) const SUCCESS: Self = Self(0);
    /// `sqlock doctor` looked at the server, and no backend keeps locks there.
    pub(crate) const NO_LOCKS: Self = Self(1);
    /// The command line, or a key or URL in it, cannot be.
    pub(crate) const USAGE: Self = Self(64);
    /// The server cannot be asked for the lock.
    pub(crate) const UNAVAILABLE: Self = Self(69);
    /// The system refused something, such as another process.
    pub(crate) const SYSTEM: Self = Self(71);
    /// Others hold the lock. `--conflict-exit-code` changes it.
    pub(crate) const CONFLICT: Self = Self(75);
    /// The lock was lost while the command ran. `--lost-exit-code` changes it.
    pub(crate) const LOST: Self = Self(76);
    /// As shells have it: the command cannot be executed.
    pub(crate) const NOT_EXECUTABLE: Self = Self(126);
    /// As shells have it: the command is not found.
    pub(crate) const NOT_FOUND: Self = Self(127);

    /// As shells have it: ended by a signal.
    pub(crate) fn of_signal(signal: i32) -> Self {
        Self(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }

    pub(crate) fn of_named_signal(signal: Signal) -> Self {
        Self::of_signal(signal.as_raw())
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}

/// Why the command was not run, or not to its end: what to say, and what to exit with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    what: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Failure {
    pub(crate) fn new(code: Code, what: impl Into<String>) -> Self {
        Self {
            code,
            what: what.into(),
            source: None,
        }
    }

    pub(crate) fn system(
        what: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::new(Code::SYSTEM, what).because(source)
    }

    /// An error of a backend, met while doing `what`.
    pub(crate) fn of(what: impl Into<String>, error: Error) -> Self {
        let code = match &error {
            Error::InvalidKey(_) | Error::InvalidOption { .. } => Code::USAGE,
            _ => Code::UNAVAILABLE,
        };
        Self::new(code, what).because(error)
    }

    fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_counted_from_128() {
        assert_eq!(Code::of_named_signal(Signal::TERM), Code(143));
        assert_eq!(Code::of_named_signal(Signal::KILL), Code(137));
        assert_eq!(Code::of_signal(64), Code(192));
        assert_eq!(Code::of_signal(i32::from(u8::MAX)), Code(255));
    }

    #[test]
    fn errors_have_the_codes_of_sysexits() {
        let unavailable = Error::Unavailable {
            backend: "session",
            source: "connection refused".into(),
        };
        assert_eq!(Failure::of("", unavailable).code, Code(69));
        assert_eq!(Failure::of("", Error::Standby).code, Code(69));
        let option = Error::InvalidOption {
            option: "url",
            reason: String::new(),
        };
        assert_eq!(Failure::of("", option).code, Code(64));
    }
}
