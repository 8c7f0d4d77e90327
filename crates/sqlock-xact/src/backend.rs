use std::{fmt, time::Duration};

use async_trait::async_trait;
use sqlock_core::{
    Error, Holder, InspectBackend, LockBackend, LockGuard, LockKey, Request, Result, SharedBackend,
};
use sqlock_postgres::{Failure, holders};
use sqlx::PgPool;
use tokio::sync::oneshot;

use crate::{BACKEND, XactHeld, acquire::acquire, register::Register};

/// Locks that are transactions: `pg_try_advisory_xact_lock`, on the application's pool.
///
/// A guard owns a transaction, in which the application works by `guard.connection()`. The lock and
/// the work end together: `commit` commits, a drop rolls back. It is the right choice behind a
/// transaction pooler.
///
/// - A held lock takes a connection of the pool, and waiting takes one for the length of a try. A
///   pool that has none to give makes an acquire wait for as long as the pool's own limit says.
/// - In generic code `release` commits, as the normal end does; what was done in the transaction is
///   there. `run_once` and `with_lock` commit where their body gives `Ok`, and roll back where it
///   gives `Err`.
/// - An error in the transaction frees the lock at that moment. The database's work is undone with
///   it; the outside world's is not.
/// - A loss is learned at the next statement. `commit` never says `Ok` unless the work is there.
pub struct XactBackend {
    pool: PgPool,
    options: XactOptions,
    register: Register,
}

/// Options of an [`XactBackend`].
#[derive(Debug, Clone)]
#[must_use = "options do nothing until `with_pool` is called"]
pub struct XactOptions {
    poll: Duration,
}

impl Default for XactOptions {
    fn default() -> Self {
        Self {
            poll: Duration::from_millis(500),
        }
    }
}

impl XactOptions {
    /// The defaults, which each setter states.
    pub fn new() -> Self {
        Self::default()
    }

    /// The longest time between two tries of a waiter; the first ones come sooner. The default is
    /// 500 ms.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll = interval.max(Duration::from_millis(1));
        self
    }

    /// A backend on this pool.
    #[must_use]
    pub fn with_pool(self, pool: PgPool) -> XactBackend {
        XactBackend {
            pool,
            options: self,
            register: Register::default(),
        }
    }
}

impl XactBackend {
    /// A backend on this pool, with the default options.
    ///
    /// Behind PgBouncer the pool's options need `extra_float_digits(None)`, which it refuses at
    /// start-up otherwise.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        XactOptions::new().with_pool(pool)
    }

    async fn request(&self, request: Request) -> Result<Option<LockGuard<XactHeld>>> {
        let deadline = request.deadline();
        let (answer, mut answered) = oneshot::channel();
        let acquiring = acquire(
            self.pool.clone(),
            self.register.clone(),
            request,
            self.options.poll,
            answer,
        );
        // not awaited: the answer comes by the channel
        drop(tokio::spawn(acquiring));
        let answer = match deadline {
            Some(deadline) if !deadline.has_passed() => {
                match deadline.bound(&mut answered).await {
                    Some(answer) => answer,
                    // time is up; an answer that came at the same moment counts
                    None => {
                        answered.close();
                        return answered.try_recv().unwrap_or(Ok(None));
                    }
                }
            }
            _ => answered.await,
        };
        answer.unwrap_or_else(|_| {
            Err(Error::Unavailable {
                backend: BACKEND,
                source: "the runtime was shut down".into(),
            })
        })
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
        self.register.shut_down().await;
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
        let found = holders(&self.pool, key.id()).await;
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
