//! What the end of a transaction was.

use sqlock_core::{Error, LockKey, LossCause};
use sqlock_postgres::Failure;

use crate::BACKEND;

/// What an error of a commit means: of our check, the server's refusal, or no answer.
pub(crate) fn of_commit(error: sqlx::Error, key: &LockKey) -> Error {
    match of_check(&error) {
        Some(Check::Ended(cause)) => lost(key, cause),
        Some(Check::Refused) => Error::Aborted {
            key: key.clone(),
            source: Box::new(error),
        },
        None => Error::CommitUnknown {
            key: key.clone(),
            source: Box::new(error),
        },
    }
}

/// What an error of a probe means.
pub(crate) fn of_probe(error: sqlx::Error, key: &LockKey) -> Error {
    match of_check(&error) {
        Some(Check::Ended(cause)) => lost(key, cause),
        Some(Check::Refused) => Error::Aborted {
            key: key.clone(),
            source: Box::new(error),
        },
        None => lost(key, LossCause::ConnectionClosed),
    }
}

pub(crate) fn of_acquire(error: sqlx::Error, operation: &'static str) -> Error {
    if matches!(error, sqlx::Error::PoolTimedOut) {
        return Error::Unavailable {
            backend: BACKEND,
            source: "the pool has no connection to give: a held lock takes one, and so may the \
                     work; make the pool larger, or give locks one of their own"
                .into(),
        };
    }
    Failure::of(error).error(BACKEND, operation)
}

enum Check {
    /// The transaction was ended before, and rolled back unless somebody committed it.
    Ended(LossCause),
    /// The server refused, and so nothing was committed.
    Refused,
}

fn of_check(error: &sqlx::Error) -> Option<Check> {
    let code = error.as_database_error()?.code();
    match code.as_deref() {
        // division by zero: the sentinel is another
        Some("22012") => Some(Check::Ended(LossCause::TransactionEnded)),
        // the server's time limits for transactions
        Some("25P03" | "25P04") => Some(Check::Ended(LossCause::ConnectionClosed)),
        // the server ends the session, perhaps in the middle of the commit
        Some(code) if code.starts_with("57P") || code.starts_with("08") => None,
        _ => Some(Check::Refused),
    }
}

fn lost(key: &LockKey, cause: LossCause) -> Error {
    Error::Lost {
        key: key.clone(),
        cause,
    }
}
