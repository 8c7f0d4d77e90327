//! Logging, for those who ask for it.

use tracing_subscriber::EnvFilter;

use crate::scrub::ScrubbedStderr;

const VARIABLE: &str = "SQLOCK_LOG";

/// Warnings, and more with each `-v`; or what `SQLOCK_LOG` says.
pub(crate) fn start(verbose: u8) {
    let level = match verbose {
        // the command itself tells of a loss
        0 => "warn,sqlock_core::lost=off",
        1 => "info,sqlock=debug,sqlock_core=debug,sqlock_session=debug",
        2 => "debug",
        _ => "trace",
    };
    let filter = match std::env::var(VARIABLE) {
        Ok(directives) if !directives.is_empty() => EnvFilter::new(directives),
        _ => EnvFilter::new(level),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| ScrubbedStderr)
        .with_ansi(false)
        .init();
}
