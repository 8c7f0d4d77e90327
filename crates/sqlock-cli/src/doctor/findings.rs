use serde::Serialize;
use sqlock_postgres::preflight::{Recommendation, Report};

/// What `sqlock doctor --json` prints. Fields may be added.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    /// This program's version.
    pub(super) sqlock: &'static str,
    /// Without user and password.
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) report: Report,
    /// What could not be found out.
    pub(super) doubt: Option<String>,
    pub(super) recommendation: Recommendation,
}
