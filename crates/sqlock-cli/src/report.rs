//! What the user is told, on standard error.

use std::{
    error::Error as StdError,
    io::{self, Write},
    process::ExitCode,
};

use crate::{
    exit::{Code, Failure},
    scrub::{printable, scrub},
};

/// One line, `sqlock: …`. Nobody may be there to read it, which is no reason to fail.
pub(crate) fn say(message: &str) {
    let message = scrub(message);
    let _ = writeln!(io::stderr().lock(), "sqlock: {}", printable(&message));
}

pub(crate) fn failure(failure: &Failure) -> ExitCode {
    say(&chain(failure));
    failure.code.into()
}

/// What clap has to say: help goes to standard output, complaints do not.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return Code::SUCCESS.into();
    }
    // it repeats what was typed, at whatever place that was
    let _ = write!(io::stderr().lock(), "{}", scrub(&error.to_string()));
    Code::USAGE.into()
}

/// The error and what lies under it, each once: some repeat their source.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut last = text.clone();
    let mut next = error.source();
    while let Some(error) = next {
        let message = error.to_string();
        if !last.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
            last = message;
        }
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use sqlock::Error;

    use super::*;

    #[test]
    fn a_chain_says_everything_once() {
        let inner = Error::Unavailable {
            backend: "session",
            source: "connection refused".into(),
        };
        let outer = Error::Unavailable {
            backend: "session",
            source: Box::new(inner),
        };
        assert_eq!(
            chain(&Failure::of("cannot reach db", outer)),
            "cannot reach db: session: the server is unavailable: connection refused"
        );
    }
}
