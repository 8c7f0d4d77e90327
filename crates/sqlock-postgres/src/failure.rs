use std::{borrow::Cow, io::ErrorKind, sync::Arc};

use sqlock_core::{BoxError, Error};

use crate::{LOCK_MEMORY_SETTING, startup::refused_by_pooler};

/// What an error of sqlx means for the locks of its connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Failure {
    /// The connection is of no more use, and what it held is gone or will be.
    Connection(Arc<sqlx::Error>),
    /// The server refused the statement and the connection goes on. What the statement had done
    /// about session locks before it failed stays done.
    Statement(Arc<sqlx::Error>),
}

impl Failure {
    /// Which of the two `error` is.
    #[must_use]
    pub fn of(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database) if !ends_connection(database.code().as_deref()) => {
                Self::Statement(Arc::new(error))
            }
            _ => Self::Connection(Arc::new(error)),
        }
    }

    /// The error for a caller of `operation`; there may be many.
    #[must_use]
    pub fn error(&self, backend: &'static str, operation: &'static str) -> Error {
        let (Self::Connection(error) | Self::Statement(error)) = self;
        if let Some(refused) = refused_by_pooler(error) {
            return refused;
        }
        let passes = is_passing(error);
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .map(Cow::into_owned);
        let source: BoxError = Box::new(Arc::clone(error));
        match code.as_deref() {
            Some("53200") => Error::LockMemory {
                setting: LOCK_MEMORY_SETTING,
                source,
            },
            Some("40P01") => Error::Deadlock { source },
            _ if passes => Error::Unavailable { backend, source },
            _ => Error::Backend {
                backend,
                operation,
                source,
            },
        }
    }
}

/// Class 57P: the server ends the session by itself; 25P03, 25P04 and 57P05 are its time limits.
fn ends_connection(code: Option<&str>) -> bool {
    code.is_some_and(|code| {
        code.starts_with("57P") || code.starts_with("08") || matches!(code, "25P03" | "25P04")
    })
}

/// Shut-downs, start-ups, full connection slots and the network pass; a wrong password does not,
/// nor does encryption that one of the two ends cannot do.
fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code();
            ends_connection(code.as_deref()) || code.as_deref() == Some("53300")
        }
        // a certificate that is not trusted, for one
        sqlx::Error::Io(error) if error.kind() == ErrorKind::InvalidData => false,
        sqlx::Error::Configuration(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::TypeNotFound { .. } => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_connection_is_retryable() {
        let failure = Failure::of(sqlx::Error::Io(ErrorKind::BrokenPipe.into()));
        assert!(matches!(failure, Failure::Connection(_)));
        assert!(failure.error("session", "acquire").is_retryable());
    }

    #[test]
    fn what_is_not_trusted_now_is_not_later() {
        let error = std::io::Error::new(ErrorKind::InvalidData, "invalid peer certificate");
        let failure = Failure::of(sqlx::Error::Io(error));
        assert!(matches!(failure, Failure::Connection(_)));
        assert!(!failure.error("session", "acquire").is_retryable());
    }

    #[test]
    fn a_wrong_option_is_not() {
        let failure = Failure::of(sqlx::Error::Configuration("no such file".into()));
        assert!(!failure.error("session", "connect").is_retryable());
    }
}
