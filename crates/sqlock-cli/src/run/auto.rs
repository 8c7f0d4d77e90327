//! The backend for a server, by a look at it.

use sqlock_postgres::{
    connect_options,
    preflight::{self, Backend, Report, recommend},
};
use tokio::time::timeout;

use super::choice::{Advisory, CONNECT};
use crate::{
    exit::{Code, Failure},
    report::say,
    target::Target,
};

/// A lease is not picked: whoever comes by another way would pick a lock, and the two would not
/// exclude each other.
pub(super) async fn pick(target: &Target) -> Result<Advisory, Failure> {
    let failed = |error| Failure::of(format!("cannot use {target}"), error);
    let options = connect_options(target.reveal()).map_err(failed)?;
    // the rest is for what comes before and after the wait for a second connection
    let look = preflight::look(&options, CONNECT / 2);
    let Ok(report) = timeout(CONNECT, look).await else {
        let what = format!("cannot use {target}: no answer within {CONNECT:?}");
        return Err(Failure::new(Code::UNAVAILABLE, what));
    };
    let report = report.map_err(failed)?;
    let recommended = recommend(&report);
    match recommended.backend {
        Some(Backend::Session) => {
            warn(&report);
            Ok(Advisory::Session)
        }
        Some(Backend::Xact) => {
            say(&format!(
                "locking by --backend xact, which holds a transaction and a server connection \
                 until the command ends: {}",
                recommended.reason
            ));
            Ok(Advisory::Xact)
        }
        Some(_) => Err(Failure::new(
            Code::UNAVAILABLE,
            format!(
                "cannot use {target} with session or xact: {}; --backend ttl excludes those only \
                 that use it too",
                recommended.reason
            ),
        )),
        None => Err(Failure::new(
            Code::UNAVAILABLE,
            format!("cannot use {target}: {}", recommended.reason),
        )),
    }
}

/// As the backend would, had it looked itself.
fn warn(report: &Report) {
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
