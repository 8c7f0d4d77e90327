//! One transaction on a pooled connection.

use sqlock_core::{Error, Result};
use sqlx::{Sqlite, SqliteConnection, SqlitePool, pool::PoolConnection};

use super::NAME;

/// A connection that is closed unless it is taken back: nobody else gets one within a transaction.
pub(super) struct Borrowed(Option<PoolConnection<Sqlite>>);

impl Borrowed {
    pub(super) async fn from(pool: &SqlitePool) -> sqlx::Result<Self> {
        Ok(Self(Some(pool.acquire().await?)))
    }

    pub(super) fn connection(&mut self) -> sqlx::Result<&mut SqliteConnection> {
        self.0.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    /// Outside a transaction, and fit for others.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.0 {
            connection.close_on_drop();
        }
    }
}

/// Begins by taking the write lock: a transaction that reads first and writes later could not be
/// given it any more.
pub(super) async fn begin(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("begin immediate").execute(connection).await?;
    Ok(())
}

pub(super) async fn commit(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("commit").execute(connection).await?;
    Ok(())
}

/// What an error of SQLite means ([result codes](https://www.sqlite.org/rescode.html)).
pub(super) fn failure(error: sqlx::Error, operation: &'static str) -> Error {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .and_then(|code| code.parse::<i32>().ok());
    let passes = match code {
        // busy and locked, with what more exactly it was in the higher bits
        Some(code) => matches!(code & 0xff, 5 | 6),
        None => matches!(
            error,
            sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed
        ),
    };
    if passes {
        Error::Unavailable {
            backend: NAME,
            source: Box::new(error),
        }
    } else {
        Error::Backend {
            backend: NAME,
            operation,
            source: Box::new(error),
        }
    }
}

/// Does `work`, and makes its error ours.
pub(super) async fn told<T>(
    operation: &'static str,
    work: impl Future<Output = sqlx::Result<T>>,
) -> Result<T> {
    work.await.map_err(|error| failure(error, operation))
}
