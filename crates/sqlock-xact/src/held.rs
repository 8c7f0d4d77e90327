use std::{fmt, sync::Arc};

use async_trait::async_trait;
use sqlock_core::{
    Error, FencingToken, Held, LockKey, LossCause, Lost, LostSender, Request, Result, Transactional,
};
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};
use tokio::runtime::Handle;

use crate::{
    BACKEND,
    outcome::{of_commit, of_probe},
    register::{Place, Register},
    statement::Sentinel,
};

/// A lock that is a transaction, of an [`XactBackend`](crate::XactBackend).
///
/// The lock is held until the transaction ends, however that comes about. An error in it frees the
/// lock at that moment, and undoes what was done in it; what was done elsewhere it does not undo.
pub struct XactHeld {
    /// `None` once it has ended.
    transaction: Option<Transaction<'static, Postgres>>,
    sentinel: Sentinel,
    keys: Arc<[LockKey]>,
    lost: Lost,
    place: Place,
    runtime: Handle,
}

impl XactHeld {
    /// Must be called on a runtime, on which the transaction is ended.
    ///
    /// `None` after a shut-down.
    pub(crate) fn new(
        transaction: Transaction<'static, Postgres>,
        sentinel: Sentinel,
        request: &Request,
        register: &Register,
    ) -> Option<Self> {
        let (sender, lost) = LostSender::new(BACKEND, request);
        let place = register.enter(sender)?;
        Some(Self {
            transaction: Some(transaction),
            sentinel,
            keys: Arc::clone(request.keys()),
            lost,
            place,
            runtime: Handle::current(),
        })
    }

    /// Asks the server whether the transaction is still the one that took the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`] where a statement in it failed, which freed the lock at that moment;
    /// [`Error::Lost`] where it was ended, or the connection was.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn probe(&mut self) -> Result<()> {
        let sql = self.sentinel.probe();
        let Some(transaction) = &mut self.transaction else {
            return self.lost.check();
        };
        let asked = sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut **transaction)
            .await;
        let Err(error) = asked else { return Ok(()) };
        let error = of_probe(error, &self.keys[0]);
        self.told(&error);
        Err(error)
    }

    async fn commit(&mut self) -> Result<()> {
        let sql = self.sentinel.commit();
        let Some(transaction) = &mut self.transaction else {
            return self.lost.check();
        };
        let asked = sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut **transaction)
            .await;
        let result = match asked {
            Ok(_) => Ok(()),
            Err(error) => Err(of_commit(error, &self.keys[0])),
        };
        if let Err(error) = &result {
            self.told(error);
        }
        self.end();
        result
    }

    /// Whoever watches the loss signal learns what we have just learned.
    fn told(&mut self, error: &Error) {
        let cause = match error {
            Error::Lost { cause, .. } => cause.clone(),
            Error::Aborted { .. } => LossCause::TransactionAborted,
            _ => LossCause::ConnectionClosed,
        };
        self.place.lose(cause);
    }

    /// What is left of the transaction is rolled back on the way to the pool.
    fn end(&mut self) {
        self.place.released();
        if let Some(transaction) = self.transaction.take() {
            // outside of a runtime the pool's connection cannot be dropped
            let _runtime = self.runtime.enter();
            drop(transaction);
        }
    }
}

#[async_trait]
impl Held for XactHeld {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn keys(&self) -> &[LockKey] {
        &self.keys
    }

    fn token(&self) -> Option<FencingToken> {
        None
    }

    /// Fires when a probe or a commit finds out: nothing reads the connection in between.
    fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// Commits.
    async fn release(&mut self) -> Result<()> {
        self.lost.check()?;
        self.commit().await
    }

    async fn roll_back(&mut self) -> Result<()> {
        let Some(transaction) = self.transaction.take() else {
            return Ok(());
        };
        self.place.released();
        let key = &self.keys[0];
        transaction
            .rollback()
            .await
            .map_err(|error| of_probe(error, key))
    }

    fn abandon(&mut self) {
        self.end();
    }
}

impl Transactional for XactHeld {
    type Connection = PgConnection;

    /// # Panics
    ///
    /// Where the transaction was ended by [`Held::release`] or [`Held::roll_back`], both of which
    /// a guard calls once, at its own end.
    #[allow(
        clippy::expect_used,
        reason = "a guard that can be called has its transaction"
    )]
    fn connection(&mut self) -> &mut PgConnection {
        let transaction = self.transaction.as_mut();
        transaction.expect("a guard that has not ended has its transaction")
    }
}

impl Drop for XactHeld {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for XactHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XactHeld")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
