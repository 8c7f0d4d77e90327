use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures_util::TryStreamExt;
use sqlock_core::{
    Error, FencingToken, Held, LockKey, LossCause, Lost, LostSender, Request, Result, Transactional,
};
use sqlock_postgres::shielded;
use sqlx::{AssertSqlSafe, Either, PgConnection, Postgres, Transaction};
use tokio::runtime::Handle;

use crate::{
    BACKEND,
    acquire::Taken,
    ending,
    outcome::{Stage, has_failed_before, of_commit, of_probe},
    register::{Place, Register},
    source::Permit,
    statement::{ROLL_BACK, Sentinel, first},
};

/// A lock that is a transaction, of an [`XactBackend`](crate::XactBackend).
///
/// The lock is held until the transaction ends, however that comes about. An error in it frees the
/// lock at that moment, and undoes what was done in it; what was done elsewhere it does not undo.
///
/// Dropped, it rolls back. Where a statement is still under way then, its caller having been
/// cancelled, that happens when the server is done with it, and the lock is held until then.
pub struct XactHeld {
    /// `None` once it has ended.
    transaction: Option<Transaction<'static, Postgres>>,
    token: Option<FencingToken>,
    sentinel: Sentinel,
    keys: Arc<[LockKey]>,
    lost: Lost,
    place: Place,
    runtime: Handle,
    _permit: Permit,
}

impl XactHeld {
    /// Must be called on a runtime, on which the transaction is ended.
    ///
    /// `None` after a shut-down.
    pub(crate) fn new(
        taken: Taken,
        sentinel: Sentinel,
        request: &Request,
        register: &Register,
        permit: Permit,
    ) -> Option<Self> {
        let (sender, lost) = LostSender::new(BACKEND, request);
        let place = register.enter(sender)?;
        Some(Self {
            transaction: Some(taken.transaction),
            token: taken.token,
            sentinel,
            keys: Arc::clone(request.keys()),
            lost,
            place,
            runtime: Handle::current(),
            _permit: permit,
        })
    }

    /// Asks the server whether the transaction is still the one that took the lock. In one round
    /// trip, and in the transaction.
    ///
    /// What it finds fires the loss signal too, which otherwise learns of a loss only at the end:
    /// nobody reads the connection while it is idle.
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
        if self.transaction.is_none() {
            return self.lost.check();
        }
        let asked = self.ask(self.sentinel.probe()).await;
        asked.map_err(|(error, _)| self.told(of_probe(error, first(&self.keys))))
    }

    async fn commit(&mut self) -> Result<()> {
        if self.transaction.is_none() {
            return self.lost.check();
        }
        let asked = self.ask(self.sentinel.commit()).await;
        if let Err((error, stage)) = asked {
            let error = self.told(of_commit(error, stage, first(&self.keys)));
            self.abandon();
            return Err(error);
        }
        self.settled();
        Ok(())
    }

    /// Sends a message that checks the sentinel first. Its error, and how far the message got.
    async fn ask(&mut self, sql: String) -> Result<(), (sqlx::Error, Stage)> {
        let mut stage = Stage::Check;
        let Some(transaction) = &mut self.transaction else {
            return Ok(());
        };
        let mut replies = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_many(&mut **transaction);
        let mut next = async || shielded(replies.try_next()).await.flatten();
        while let Some(reply) = next().await.map_err(|error| (error, stage))? {
            if matches!(reply, Either::Right(_)) {
                stage = Stage::End;
            }
        }
        Ok(())
    }

    /// Whoever watches the loss signal learns what we have just learned.
    fn told(&self, error: Error) -> Error {
        let cause = match &error {
            Error::Lost { cause, .. } => cause.clone(),
            Error::Aborted { .. } => LossCause::TransactionAborted,
            _ => LossCause::ConnectionClosed,
        };
        self.place.lose(cause);
        error
    }

    /// The server has ended the transaction, and begun an empty one, which goes behind the back of
    /// the caller.
    fn settled(&mut self) {
        self.place.released();
        if let Some(transaction) = self.transaction.take() {
            ending::give_back(&self.runtime, transaction);
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
        self.token
    }

    /// Fires when a probe or a commit finds out: nothing reads the connection in between.
    fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// The normal end, which is a commit.
    async fn release(&mut self) -> Result<()> {
        self.lost.check()?;
        self.commit().await
    }

    /// Rolls back, which is what a transaction that had failed needs too.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] where other SQL had ended it, so that there may be work that was committed,
    /// or where the connection was lost.
    async fn roll_back(&mut self) -> Result<()> {
        let mut asked = self.ask(self.sentinel.roll_back()).await;
        if let (Err((error, _)), Some(transaction)) = (&asked, &mut self.transaction)
            && has_failed_before(error)
        {
            let ended = sqlx::raw_sql(ROLL_BACK).execute(&mut **transaction);
            let ended = shielded(ended).await.flatten();
            asked = ended.map(|_| ()).map_err(|error| (error, Stage::End));
        }
        if let Err((error, _)) = asked {
            let error = self.told(of_probe(error, first(&self.keys)));
            self.abandon();
            return Err(error);
        }
        self.settled();
        Ok(())
    }

    fn abandon(&mut self) {
        self.place.released();
        if let Some(transaction) = self.transaction.take() {
            ending::roll_back(&self.runtime, transaction);
        }
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
        self.abandon();
    }
}

impl fmt::Debug for XactHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XactHeld")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
