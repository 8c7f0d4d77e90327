//! The look at the server before a backend's first session, and what is told of it.

use sqlock_core::Error;
use sqlock_postgres::preflight::{Backend, Report, session_locks};
use sqlx::postgres::PgConnectOptions;
use tokio::time::timeout;

use crate::{BACKEND, options::SessionOptions};

/// Refuses what session locks are not safe on, and warns of what may be.
pub(crate) async fn check(
    options: &SessionOptions,
    connect: &PgConnectOptions,
) -> Result<(), Error> {
    // the rest is for what comes before and after the wait for a second connection
    let patience = options.connect_timeout / 2;
    let report = timeout(options.connect_timeout, session_locks(connect, patience))
        .await
        .map_err(|_| too_late(options))??;
    warn(&report);
    Ok(())
}

pub(crate) fn too_late(options: &SessionOptions) -> Error {
    Error::Unavailable {
        backend: BACKEND,
        source: format!("no connection within {:?}", options.connect_timeout).into(),
    }
}

fn warn(report: &Report) {
    if let Some(doubt) = report.doubt() {
        tracing::warn!(doubt, "session locks may not be safe on this connection");
    }
    let dangers = report.dangers.iter();
    for danger in dangers.filter(|danger| danger.backends.contains(&Backend::Session)) {
        tracing::warn!(
            setting = danger.setting,
            value = danger.value,
            why = danger.why,
            advice = danger.advice,
            "a setting of the server endangers locks"
        );
    }
}
