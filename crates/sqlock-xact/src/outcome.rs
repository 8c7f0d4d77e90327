//! What the end of a transaction was, and what an error of its statements means.

use std::borrow::Cow;

use sqlock_core::{Error, LockKey, LossCause};
use sqlock_postgres::Failure;
use sqlx::{
    PgPool,
    error::DatabaseError,
    postgres::{PgDatabaseError, PgSeverity},
};

use crate::BACKEND;

/// How far the message of an end got: it checks the sentinel first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Check,
    End,
}

/// What an error of a commit means: of our check, the server's refusal, or no answer.
pub(crate) fn of_commit(error: sqlx::Error, stage: Stage, key: &LockKey) -> Error {
    match of_end(&error, stage) {
        End::Lost(cause) => lost(key, cause),
        End::Refused => Error::Aborted {
            key: key.clone(),
            source: Box::new(error),
        },
        End::Unknown => Error::CommitUnknown {
            key: key.clone(),
            source: Box::new(error),
        },
    }
}

/// What an error of a probe or a roll-back means.
pub(crate) fn of_probe(error: sqlx::Error, key: &LockKey) -> Error {
    match of_end(&error, Stage::Check) {
        End::Lost(cause) => lost(key, cause),
        End::Refused => Error::Aborted {
            key: key.clone(),
            source: Box::new(error),
        },
        End::Unknown => lost(key, LossCause::ConnectionClosed),
    }
}

/// The transaction had failed already, and wants to be rolled back.
pub(crate) fn has_failed_before(error: &sqlx::Error) -> bool {
    code(error).as_deref() == Some("25P02")
}

/// The error's SQLSTATE, where it is of the server.
pub(crate) fn code(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error().and_then(DatabaseError::code)
}

/// What an error of taking a lock means.
pub(crate) fn of_acquire(error: sqlx::Error) -> Error {
    Failure::of(error).error(BACKEND, "acquire")
}

/// The pool gave no connection, and why.
pub(crate) fn no_connection(pool: &PgPool) -> Error {
    let all_in_use = pool.size() >= pool.options().get_max_connections() && pool.num_idle() == 0;
    let reason = if all_in_use {
        "the pool has no connection to give: a held lock takes one, and so may the work; make the \
         pool larger, or give locks one of their own"
    } else {
        "no connection could be made in time"
    };
    Error::Unavailable {
        backend: BACKEND,
        source: reason.into(),
    }
}

enum End {
    /// The transaction was ended before, and rolled back unless somebody committed it.
    Lost(LossCause),
    /// The server refused, and so nothing was committed.
    Refused,
    /// The connection ended, perhaps in the middle of the commit.
    Unknown,
}

fn of_end(error: &sqlx::Error, stage: Stage) -> End {
    let Some(answer) = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
    else {
        return End::Unknown;
    };
    match answer.code() {
        // division by zero: the sentinel is another
        "22012" if stage == Stage::Check => End::Lost(LossCause::TransactionEnded),
        // the server's time limits, which it keeps between statements
        "25P03" | "25P04" => End::Lost(LossCause::TransactionTimedOut),
        // what does not end the session undid the transaction
        _ if matches!(answer.severity(), PgSeverity::Error) => End::Refused,
        _ => End::Unknown,
    }
}

fn lost(key: &LockKey, cause: LossCause) -> Error {
    Error::Lost {
        key: key.clone(),
        cause,
    }
}
