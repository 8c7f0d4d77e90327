//! Fencing tokens of locks that are transactions.
//!
//! A token must not go back with the transaction. A sequence's number does not; a row's would, so that
//! it is drawn on a connection of its own, and committed before the lock is handed out.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use sqlock_core::{Error, FencingToken};
use sqlock_postgres::{Failure, Fencing, TokenKind, TokenSource, shielded};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Row, postgres::PgRow};
use tokio::time::timeout;

use crate::{BACKEND, source::Failed};

/// Where tokens come from, as far as that is known.
pub(crate) struct Tokens {
    fencing: Fencing,
    found: Mutex<Option<TokenSource>>,
    /// For a row's tokens. Closed where a draw on it was not answered.
    connection: tokio::sync::Mutex<Option<PgConnection>>,
}

impl Tokens {
    pub(crate) fn new(fencing: Fencing) -> Self {
        Self {
            fencing,
            found: Mutex::default(),
            connection: tokio::sync::Mutex::default(),
        }
    }

    /// Looks, the first time and after a failure.
    pub(crate) async fn source(&self, pool: &PgPool) -> Result<TokenSource, Failed> {
        let found = self.lock().clone();
        if let Some(found) = found {
            return Ok(found);
        }
        let opened = self.fencing.open(pool, BACKEND).await;
        let source = opened.map_err(Failed::from)?;
        if source.kind() == TokenKind::Sequence {
            self.raise(&source, pool).await?;
        }
        *self.lock() = Some(source.clone());
        Ok(source)
    }

    /// Outside of the lock's transaction, as it must be there for everybody, and must last.
    pub(crate) async fn raise(&self, source: &TokenSource, pool: &PgPool) -> Result<(), Failed> {
        let raise = sqlx::raw_sql(AssertSqlSafe(source.raise()));
        let raised = shielded(raise.execute(pool)).await.flatten();
        raised.map_err(|error| self.failed(source, error))?;
        Ok(())
    }

    /// Must be called after the key was granted.
    pub(crate) async fn draw_from_row(
        &self,
        source: &TokenSource,
        pool: &PgPool,
    ) -> Result<FencingToken, Failed> {
        let mut connection = self.connection.lock().await;
        let limit = pool.options().get_acquire_timeout();
        let had_one = connection.is_some();
        // what was drawn before is not known, and is a gap
        let mut drawn = timeout(limit, draw(&mut connection, source, pool)).await;
        if had_one && drawn.as_ref().is_ok_and(Result::is_err) {
            *connection = None;
            drawn = timeout(limit, draw(&mut connection, source, pool)).await;
        }
        match drawn {
            Ok(Ok(token)) => Ok(token),
            Ok(Err(error)) => {
                *connection = None;
                Err(self.failed(source, error))
            }
            Err(_) => {
                *connection = None;
                Err(Failed::ForNow(Error::Unavailable {
                    backend: BACKEND,
                    source: format!("no fencing token within {limit:?}").into(),
                }))
            }
        }
    }

    /// What a failure to draw means. The next one looks again at what is there.
    pub(crate) fn failed(&self, source: &TokenSource, error: sqlx::Error) -> Failed {
        self.failure(source, &Failure::of(error))
    }

    pub(crate) fn nothing_drawn(&self, source: &TokenSource) -> Failed {
        self.failure(source, &TokenSource::nothing_drawn())
    }

    fn failure(&self, source: &TokenSource, failure: &Failure) -> Failed {
        *self.lock() = None;
        Failed::from(source.error(BACKEND, "acquire", failure))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<TokenSource>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn draw(
    connection: &mut Option<PgConnection>,
    source: &TokenSource,
    pool: &PgPool,
) -> sqlx::Result<FencingToken> {
    shielded(draw_on(connection, source, pool)).await.flatten()
}

async fn draw_on(
    connection: &mut Option<PgConnection>,
    source: &TokenSource,
    pool: &PgPool,
) -> sqlx::Result<FencingToken> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(PgConnection::connect_with(&pool.connect_options()).await?),
    };
    let draw = sqlx::raw_sql(AssertSqlSafe(source.draw_from_row()));
    let rows: Vec<PgRow> = draw.fetch_all(connection).await?;
    let row = rows.last().ok_or(sqlx::Error::RowNotFound)?;
    Ok(FencingToken::new(row.try_get(0)?))
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("fencing", &self.fencing)
            .finish_non_exhaustive()
    }
}
