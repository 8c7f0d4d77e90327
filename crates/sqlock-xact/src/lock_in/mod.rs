//! Locks in a transaction of the caller's own.

mod functions;
mod look;
mod waiting;

use sqlock_core::{Deadline, Error, IntoLockKeys, LockKey, Mode, Result, Wait, in_lock_order};
use sqlock_postgres::shielded;
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::Instant;

pub use functions::{
    lock_all_in, lock_all_shared_in, lock_in, lock_shared_in, try_lock_all_in,
    try_lock_all_shared_in, try_lock_in, try_lock_shared_in,
};

use crate::{
    BACKEND,
    outcome::{code, of_acquire},
    statement::{first, only},
};
use look::{Look, Snapshot};
use waiting::Waiting;

/// Undoes what was done since, and what failed since; the transaction goes on as it was.
const UNDO: &str = "rollback to savepoint sqlock; release savepoint sqlock";

/// How locks are taken in a transaction of your own. [`try_lock_in`] and its kind are short for it.
///
/// The locks are held until the transaction ends, or goes back to a savepoint that was set before
/// they were taken ([PostgreSQL, advisory locks]): a `ROLLBACK TO SAVEPOINT`, or the roll-back of a
/// nested transaction of sqlx's, frees them. A transaction takes its own lock again at once.
///
/// ```no_run
/// # use std::time::Duration;
/// # use sqlock_xact::LockIn;
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let mut transaction = pool.begin().await?;
/// let shared = LockIn::new().shared();
/// shared.lock(&mut transaction, ["stock/7", "stock/9"], Duration::from_secs(2)).await?;
/// # Ok(()) }
/// ```
///
/// [PostgreSQL, advisory locks]: https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS
#[derive(Debug, Clone, Copy)]
#[must_use = "options do nothing until `lock` or `try_lock` is called"]
pub struct LockIn {
    mode: Mode,
    snapshot: Snapshot,
}

impl Default for LockIn {
    fn default() -> Self {
        Self {
            mode: Mode::Exclusive,
            snapshot: Snapshot::OfEachStatement,
        }
    }
}

impl LockIn {
    /// An exclusive lock, at isolation level READ COMMITTED only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Beside other shared holders, and excluding exclusive ones. The default is exclusive.
    pub fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    /// At REPEATABLE READ and SERIALIZABLE too. The default is to refuse them.
    ///
    /// There, all that the transaction reads is as of its first statement, which comes before the
    /// lock: it does not see what the last holder wrote meanwhile ([PostgreSQL, Repeatable Read]).
    /// What it writes over that fails, with 40001; what it only reads is old.
    ///
    /// [PostgreSQL, Repeatable Read]: https://www.postgresql.org/docs/current/transaction-iso.html#XACT-REPEATABLE-READ
    pub fn at_any_isolation(mut self) -> Self {
        self.snapshot = Snapshot::MayBeOlder;
        self
    }

    /// Takes all of the keys if they are free, or none: `false` where another has one. Does not
    /// wait.
    ///
    /// One round trip for one key, two for several.
    ///
    /// # Errors
    ///
    /// - [`Error::NoTransaction`] where the connection is in none, so that a lock would be gone at
    ///   once;
    /// - [`Error::StaleSnapshot`] at REPEATABLE READ and above, unless
    ///   [allowed](Self::at_any_isolation);
    /// - [`Error::Aborted`] where the transaction had failed before;
    /// - [`Error::Standby`] on a standby, whose locks are its own;
    /// - [`Error::LockMemory`], [`Error::Unavailable`] and [`Error::Backend`] as the server says.
    ///
    /// None of the keys is held then. The transaction goes on as it was, unless the connection broke.
    ///
    /// # Cancel safety
    ///
    /// Dropped midway, it is not known which of the keys are held, or whether the transaction has
    /// failed. Drop the transaction, which rolls it back; sqlx's `rollback` may give the error of the
    /// statement that was under way.
    pub async fn try_lock(
        self,
        connection: &mut PgConnection,
        keys: impl IntoLockKeys,
    ) -> Result<bool> {
        let keys = in_lock_order(keys.into_lock_keys()?)?;
        Ok(self.look(connection, &keys).await?.is_taken())
    }

    /// Waits until all of the keys are had, for as long as `wait` says.
    ///
    /// It waits in the server, by a `lock_timeout` that is as before afterwards ([PostgreSQL,
    /// `lock_timeout`]); a `statement_timeout` of the caller's that is shorter ends the wait too. Keys are
    /// taken in one order, and those that are had are kept while the next is waited for.
    ///
    /// [PostgreSQL, `lock_timeout`]: https://www.postgresql.org/docs/current/runtime-config-client.html#GUC-LOCK-TIMEOUT
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] where the budget ran out, and those of [`try_lock`](Self::try_lock). None
    /// of the keys is held then, and the transaction goes on as it was.
    ///
    /// [`Error::Deadlock`] where the server found one, after its `deadlock_timeout`, of a second by
    /// default. The transaction goes on too, but it still holds what the other one waits for: roll it
    /// back, and begin anew.
    ///
    /// # Cancel safety
    ///
    /// As [`try_lock`](Self::try_lock). The server waits on, for as long as `wait` says, and the
    /// transaction's roll-back waits for that.
    pub async fn lock(
        self,
        connection: &mut PgConnection,
        keys: impl IntoLockKeys,
        wait: impl Into<Wait>,
    ) -> Result<()> {
        let (started, deadline) = (Instant::now(), wait.into().start());
        let keys = in_lock_order(keys.into_lock_keys()?)?;
        let look = self.look(connection, &keys).await?;
        if look.is_taken() || self.wait(connection, &keys, look, deadline).await? {
            return Ok(());
        }
        Err(Error::Timeout {
            key: first(&keys).clone(),
            waited: started.elapsed(),
        })
    }

    async fn look(self, connection: &mut PgConnection, keys: &[LockKey]) -> Result<Look> {
        let sql = Look::statement(keys, self.mode, self.snapshot);
        let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut *connection);
        let look = match shielded(rows)
            .await
            .flatten()
            .and_then(only)
            .and_then(|row| Look::of(&row))
        {
            Ok(look) => look,
            Err(error) => return Err(undone(connection, error, first(keys)).await),
        };
        if let Some(end) = look.end(keys) {
            let ended = shielded(sqlx::raw_sql(end).execute(connection)).await;
            ended.flatten().map_err(of_acquire)?;
        }
        look.check()?;
        Ok(look)
    }

    /// Whether the keys are had.
    async fn wait(
        self,
        connection: &mut PgConnection,
        keys: &[LockKey],
        look: Look,
        deadline: Deadline,
    ) -> Result<bool> {
        if deadline.has_passed() {
            return Ok(false);
        }
        let mut waiting = Waiting::new(connection, keys, self.mode, look, deadline);
        let outcome = shielded(waiting.run()).await.flatten();
        let is_limit = outcome.as_ref().is_err_and(|error| waiting.is_limit(error));
        match outcome {
            Ok(true) => Ok(true),
            // those that are had already are freed
            Ok(false) => {
                let ended = shielded(sqlx::raw_sql(UNDO).execute(connection)).await;
                ended.flatten().map_err(of_acquire)?;
                Ok(false)
            }
            Err(error) => match undone(connection, error, first(keys)).await {
                // of the connection, it is the one to tell
                error @ Error::Unavailable { .. } => Err(error),
                _ if is_limit => Ok(false),
                error => Err(error),
            },
        }
    }
}

/// Goes back to where the transaction was before a statement of ours failed. What that was.
async fn undone(connection: &mut PgConnection, error: sqlx::Error, key: &LockKey) -> Error {
    match code(&error).as_deref() {
        Some("25P01") => return Error::NoTransaction,
        Some("25P02") => {
            return Error::Aborted {
                key: key.clone(),
                source: Box::new(error),
            };
        }
        _ => {}
    }
    let going_back = sqlx::raw_sql(UNDO).execute(connection);
    if let Err(failed) = shielded(going_back).await.flatten() {
        tracing::debug!(backend = BACKEND, %failed, "the transaction could not go back");
    }
    of_acquire(error)
}
