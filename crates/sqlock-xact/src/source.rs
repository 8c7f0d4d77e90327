//! Where transactions come from: the pool, with an orderly queue in front of it.

use std::sync::Arc;

use sqlock_core::{Deadline, Error, Result};
use sqlock_postgres::preflight::{Preflight, transaction_locks};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row, Transaction};
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{
    BACKEND,
    outcome::{no_connection, of_acquire},
    register::Register,
    statement::{BEGIN, STANDBY, TAKEN, only},
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
    pub(crate) fn new(pool: PgPool, preflight: Preflight) -> Self {
        let connections = usize::try_from(pool.options().get_max_connections());
        let permits = connections.unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            pool,
            register: Register::default(),
            preflight,
            was_looked_at: OnceCell::new(),
            permits: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
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
        let begun = self.pool.begin_with(BEGIN).await;
        begun.map_err(|error| self.failed(error))
    }

    /// Whether the statement, which tries, was granted all that it asks for.
    pub(crate) async fn is_taken(
        &self,
        transaction: &mut Transaction<'static, Postgres>,
        sql: String,
    ) -> Result<bool, Failed> {
        let rows = sqlx::raw_sql(AssertSqlSafe(sql))
            .fetch_all(&mut **transaction)
            .await;
        let status = rows.and_then(only).and_then(|row| row.try_get::<i32, _>(1));
        match status.map_err(Failed::of)? {
            STANDBY => Err(Failed::Finally(Error::Standby)),
            status => Ok(status == TAKEN),
        }
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
        match of_acquire(error) {
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
