use super::{LockSupport, Pooler, Report, Role};

/// The backends of sqlock that work on PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Backend {
    /// Locks of a session, many on one connection.
    Session,
    /// Locks that are transactions.
    Xact,
    /// Leases in a table.
    Ttl,
}

/// Which backend to use, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Recommendation {
    /// The backend; none where this server can keep no locks.
    pub backend: Option<Backend>,
    /// Why, or what to do first.
    pub reason: String,
}

/// The backend for the server of this report.
///
/// Session locks where a connection has a server process of its own: they are the fastest, cost one
/// connection a process and are freed at once when their holder dies. Where it has none, or that is
/// not known, locks that are transactions. Where those are not to be had either, leases.
#[must_use]
pub fn recommend(report: &Report) -> Recommendation {
    if report.role == Some(Role::Standby) {
        return nothing("this is a standby, which can keep no locks; connect to the primary");
    }
    if matches!(report.pooler, Pooler::SeveralServers { .. }) {
        return nothing(
            "connections reach several servers, each with locks of its own; connect to one of them",
        );
    }
    let has_transaction_locks = is_there(&report.transaction_locks);
    match &report.pooler {
        Pooler::NotSeen | Pooler::Session if is_there(&report.session_locks) => Recommendation {
            backend: Some(Backend::Session),
            reason:
                "a connection has a server process of its own, so that session locks are safe: \
                     one connection a process, freed at once when their holder dies"
                    .to_owned(),
        },
        Pooler::Statement { .. } => leases(
            report,
            "the pooler lends server processes for a statement, so that only leases are safe",
        ),
        Pooler::Transaction { .. } if has_transaction_locks => Recommendation {
            backend: Some(Backend::Xact),
            reason: "the pooler lends server processes for a transaction, so that a lock is safe \
                     within one; where the work is too long for a transaction, use ttl"
                .to_owned(),
        },
        Pooler::NotLooked { reason } if has_transaction_locks => Recommendation {
            backend: Some(Backend::Xact),
            reason: format!(
                "whether there is a pooler is not known ({reason}), and a transaction's lock is \
                 safe with one and without"
            ),
        },
        _ if has_transaction_locks => Recommendation {
            backend: Some(Backend::Xact),
            reason: format!(
                "{} has locks of transactions, and none of sessions",
                report.engine.name()
            ),
        },
        _ => leases(report, "the server has no advisory locks"),
    }
}

fn leases(report: &Report, why: &str) -> Recommendation {
    if !report.engine.may_keep_leases() {
        return nothing(&format!(
            "{} has no advisory locks and no row locks; use another database for locks",
            report.engine.name()
        ));
    }
    let untested = match report.session_locks {
        LockSupport::Genuine => "",
        _ => "; sqlock was not tested on this engine",
    };
    Recommendation {
        backend: Some(Backend::Ttl),
        reason: format!("{why}{untested}"),
    }
}

fn nothing(reason: &str) -> Recommendation {
    Recommendation {
        backend: None,
        reason: reason.to_owned(),
    }
}

fn is_there(support: &LockSupport) -> bool {
    matches!(support, LockSupport::Genuine | LockSupport::Tested)
}
