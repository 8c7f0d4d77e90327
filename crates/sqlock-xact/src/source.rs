//! Where transactions come from: the pool, with an orderly queue in front of it.

use std::sync::Arc;

use sqlock_core::{Deadline, Error, FencingToken, Result};
use sqlock_postgres::{
    TokenSource,
    preflight::{Preflight, transaction_locks},
    shielded,
};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row, Transaction};
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{
    BACKEND, XactOptions,
    outcome::{no_connection, of_acquire},
    register::Register,
    statement::{BEGIN, STANDBY, TAKEN, only},
    tokens::Tokens,
};

/// The right to one of the pool's connections, until it is given back.
pub(crate) type Permit = OwnedSemaphorePermit;

/// The pool, and what was found out about its server.
///
/// A `begin` on the pool must not be cancelled, also not while it waits for a connection. So no
/// more of them are under way than the pool has connections; the others wait here, where they can
/// be.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) pool: PgPool,
    pub(crate) register: Register,
    preflight: Preflight,
    was_looked_at: OnceCell<()>,
    permits: Arc<Semaphore>,
    pub(crate) tokens: Option<Tokens>,
}

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    /// With the token that the statement drew, where it did.
    Taken(Option<FencingToken>),
    Refused,
    /// A standby's locks are its own.
    Standby,
}

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Another attempt would fare no better.
    Finally(Error),
    /// The connection broke, or could not be made. Those who wait try again.
    ForNow(Error),
}

impl Source {
    pub(crate) fn new(pool: PgPool, options: &XactOptions) -> Self {
        let connections = usize::try_from(pool.options().get_max_connections());
        let permits = connections.unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            pool,
            register: Register::default(),
            preflight: options.preflight,
            was_looked_at: OnceCell::new(),
            permits: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            tokens: options.fencing.clone().map(Tokens::new),
        }
    }

    /// Waits until the pool can have a connection, for as long as the pool and the request do.
    pub(crate) async fn permit(&self, deadline: Option<Deadline>) -> Result<Permit> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = timeout(self.pool.options().get_acquire_timeout(), permit);
        let permit = match deadline {
            Some(deadline) if !deadline.has_passed() => deadline.bound(permit).await,
            _ => Some(permit.await),
        };
        match permit {
            Some(Ok(Ok(permit))) => Ok(permit),
            _ => Err(no_connection(&self.pool)),
        }
    }

    /// Must not be cancelled.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, Failed> {
        if self.preflight == Preflight::Check {
            self.was_looked_at.get_or_try_init(|| self.look()).await?;
        }
        let begun = shielded(self.pool.begin_with(BEGIN)).await.flatten();
        begun.map_err(|error| self.failed(error))
    }

    /// What the statement, which tries, was granted: all that it asks for, or nothing.
    pub(crate) async fn tried(
        &self,
        transaction: &mut Transaction<'static, Postgres>,
        sql: String,
    ) -> sqlx::Result<Tried> {
        let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut **transaction);
        let rows = shielded(rows).await.flatten()?;
        let row = only(rows)?;
        Ok(match row.try_get::<i32, _>(1)? {
            STANDBY => Tried::Standby,
            TAKEN if row.len() > 2 => Tried::Taken(TokenSource::token(&row, 2)?),
            TAKEN => Tried::Taken(None),
            _ => Tried::Refused,
        })
    }

    async fn look(&self) -> Result<(), Failed> {
        match transaction_locks(&self.pool).await {
            Ok(_) => Ok(()),
            Err(error) if is_starved(&error) => Err(Failed::Finally(no_connection(&self.pool))),
            Err(error @ Error::Unavailable { .. }) => Err(Failed::ForNow(error)),
            Err(error) => Err(Failed::Finally(error)),
        }
    }

    fn failed(&self, error: sqlx::Error) -> Failed {
        match error {
            sqlx::Error::PoolTimedOut => Failed::Finally(no_connection(&self.pool)),
            sqlx::Error::PoolClosed => Failed::Finally(Error::Unavailable {
                backend: BACKEND,
                source: "the pool was closed".into(),
            }),
            error => Failed::of(error),
        }
    }
}

impl Failed {
    pub(crate) fn of(error: sqlx::Error) -> Self {
        Self::from(of_acquire(error))
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error {
            error @ Error::Unavailable { .. } => Self::ForNow(error),
            error => Self::Finally(error),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        let (Failed::Finally(error) | Failed::ForNow(error)) = failed;
        error
    }
}

fn is_starved(error: &Error) -> bool {
    let Error::Unavailable { source, .. } = error else {
        return false;
    };
    let source = source.downcast_ref::<Arc<sqlx::Error>>();
    source.is_some_and(|source| matches!(**source, sqlx::Error::PoolTimedOut))
}
