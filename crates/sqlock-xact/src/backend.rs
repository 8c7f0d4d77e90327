use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlock_core::{
    Error, Holder, InspectBackend, LockBackend, LockGuard, LockKey, Request, Result, SharedBackend,
};
use sqlock_postgres::{Failure, holders};
use sqlx::PgPool;
use tokio::{sync::oneshot, time::timeout};

use crate::{
    BACKEND, XactHeld, XactOptions,
    acquire::{Acquire, Granted},
    outcome::no_connection,
    progress::{Progress, State},
    source::Source,
};

/// Locks that are transactions: `pg_try_advisory_xact_lock`, on the application's pool.
///
/// A guard owns a transaction, in which the application works by `guard.connection()`. The lock and
/// the work end together: `commit` commits, a drop rolls back. It is the right choice behind a
/// transaction pooler. It takes PostgreSQL 12 or newer.
///
/// - `commit` says `Ok` only where the work is there. A transaction that had failed is
///   [`Error::Aborted`], one that other SQL had ended is [`Error::Lost`], and a connection that was
///   lost meanwhile is [`Error::CommitUnknown`].
/// - In generic code `release` commits, as the normal end does: what was done in the transaction is
///   there. `run_once` and `with_lock` commit where their body gives `Ok`, and roll back where it
///   gives `Err`.
/// - An error in the transaction frees the lock at that moment. The database's work is undone with
///   it; the outside world's is not.
/// - A loss is learned at the next statement: nobody reads the connection while it is idle.
///   [`XactHeld::probe`] asks.
/// - A held lock takes a connection of the pool, and waiting takes one for the length of a try. Where
///   the pool has none to give, a try waits for as long as the pool's `acquire_timeout` says, and
///   whoever has a budget no longer than that; the error is [`Error::Unavailable`], and says so.
/// - A try without a budget takes twice as long at most, also where the server falls silent. Bound a
///   commit by a time limit of your own: dropped, it ends the lock all the same.
/// - Nested transactions, `guard.connection().begin()`, are savepoints.
/// - A pool's connections live on the runtime that made them, and so do the locks on them: where it
///   is shut down they are closed, and rolled back by the server.
///
/// In a transaction of your own, take locks with [`try_lock_in`](crate::try_lock_in) and its kind.
pub struct XactBackend {
    source: Arc<Source>,
    options: XactOptions,
}

impl XactBackend {
    /// A backend on this pool, with the default options.
    ///
    /// Behind PgBouncer the pool's connect options need `extra_float_digits(None)`: it refuses at
    /// start-up what it does not know, which the first lock then reports as
    /// [`Error::InvalidOption`].
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        XactOptions::new().with_pool(pool)
    }

    pub(crate) fn open(pool: PgPool, options: XactOptions) -> Self {
        Self {
            source: Arc::new(Source::new(pool, &options)),
            options,
        }
    }

    async fn request(&self, request: Request) -> Result<Granted> {
        let deadline = request.deadline();
        let progress = Arc::new(Progress::default());
        let (answer, mut answered) = oneshot::channel();
        let acquire = Acquire {
            source: Arc::clone(&self.source),
            request,
            poll: self.options.poll,
            progress: Arc::clone(&progress),
            answer,
        };
        // not awaited: the answer comes by the channel
        drop(tokio::spawn(acquire.run()));
        let answer = match deadline {
            Some(deadline) if !deadline.has_passed() => match deadline.bound(&mut answered).await {
                Some(answer) => answer,
                None => return self.last_word(answered, &progress),
            },
            _ => match timeout(self.try_limit(), &mut answered).await {
                Ok(answer) => answer,
                // a try that was refused would have ended
                Err(_) => match self.last_word(answered, &progress) {
                    Ok(None) => return Err(no_answer(self.try_limit())),
                    answer => return answer,
                },
            },
        };
        answer.unwrap_or_else(|_| {
            Err(Error::Unavailable {
                backend: BACKEND,
                source: "the runtime was shut down".into(),
            })
        })
    }

    /// How long a try without a budget may take: for a connection as long as the pool says, and for
    /// the server's answers as long again.
    fn try_limit(&self) -> Duration {
        self.source
            .pool
            .options()
            .get_acquire_timeout()
            .saturating_mul(2)
    }

    /// Time is up. An answer that came at the same moment counts; and where nobody is known to hold
    /// the lock, that is what to say.
    fn last_word(
        &self,
        mut answered: oneshot::Receiver<Result<Granted>>,
        progress: &Progress,
    ) -> Result<Granted> {
        answered.close();
        match (answered.try_recv(), progress.take()) {
            (Ok(answer), _) => answer,
            (Err(_), State::Asked) => Ok(None),
            (Err(_), State::NoConnection) => Err(no_connection(&self.source.pool)),
            (Err(_), State::Failed(error)) => Err(error),
        }
    }
}

fn no_answer(limit: Duration) -> Error {
    Error::Unavailable {
        backend: BACKEND,
        source: format!("no answer within {limit:?}").into(),
    }
}

#[async_trait]
impl LockBackend for XactBackend {
    type Held = XactHeld;

    fn name(&self) -> &'static str {
        BACKEND
    }

    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<XactHeld>>> {
        self.request(request).await
    }

    /// Refuses further requests, tells the guards, and waits until their owners have ended them:
    /// a transaction cannot be ended under the hands of whoever works in it. The pool is the
    /// application's to close.
    async fn shutdown(&self) -> Result<()> {
        self.source.register.shut_down().await;
        Ok(())
    }
}

#[async_trait]
impl SharedBackend for XactBackend {
    async fn acquire_shared(&self, request: Request) -> Result<Option<LockGuard<XactHeld>>> {
        self.request(request).await
    }
}

#[async_trait]
impl InspectBackend for XactBackend {
    async fn holders(&self, key: &LockKey) -> Result<Vec<Holder>> {
        let found = holders(&self.source.pool, key.id()).await;
        found.map_err(|error| Failure::of(error).error(BACKEND, "inspect"))
    }
}

impl fmt::Debug for XactBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XactBackend")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
