mod first_of;
mod line;
mod permits;

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

pub(crate) use line::Lines;

use self::{first_of::first_of, line::Line, permits::permits_of};
use crate::{
    Deadline, Error, LeaseBackend, Lock, LockBackend, LockGuard, LockKey, Result, Wait, chance,
    lock::run,
};

/// N permits under one name: at most so many hold one at the same time. Made by
/// [`Locks::semaphore`](crate::Locks::semaphore).
///
/// ```
/// # use sqlock_core::{Locks, MemoryBackend};
/// # async fn import() {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
/// # let locks = Locks::new(MemoryBackend::new());
/// let imports = locks.semaphore("imports", 3)?;
///
/// let permit = imports.acquire().await?;
/// permit.protect(import()).await?;
/// permit.release().await?; // dropping it returns it as well, without waiting
/// # Ok(()) }
/// ```
///
/// Each permit is a lock of its own, and its guard is a [`LockGuard`]: it is lost, released and
/// returned from a holder that died by the rules of the backend. Its token rises with every holder
/// of that permit; those of different permits are not comparable.
///
/// All who use it have to agree about the number of permits. Where programs do not, at most the
/// larger number is held. Within a process a second number is refused.
#[must_use = "a semaphore does nothing until a permit is asked for"]
pub struct Semaphore<B: LockBackend> {
    /// Names the semaphore, and has the options of each permit.
    lock: Lock<B>,
    key: LockKey,
    permits: Arc<[LockKey]>,
    line: Arc<Line>,
}

/// How many permits who waits is told of by the backend at once. Each costs as much as any waiter
/// does there.
const WATCHED: usize = 8;
/// Where there are more of them, the longest time until all are looked at again.
const UNTIL_NEXT_LOOK: Duration = Duration::from_millis(500);

type Granted<B> = Result<Option<LockGuard<<B as LockBackend>::Held>>>;

/// What a look at all permits gave.
enum Look<B: LockBackend> {
    Granted(LockGuard<B::Held>),
    Taken,
    Unknown,
}

impl<B: LockBackend> Semaphore<B> {
    pub(crate) fn new(lock: Lock<B>, permits: usize, lines: &Lines) -> Result<Self> {
        let key = lock.keys.as_ref().map_err(Clone::clone)?[0].clone();
        Ok(Self {
            permits: permits_of(&key, permits)?,
            line: lines.line(&key, permits)?,
            key,
            lock,
        })
    }

    /// How long [`acquire`](Self::acquire) waits. The default is that of [`Locks`](crate::Locks),
    /// which is for as long as it takes.
    pub fn within(mut self, wait: impl Into<Wait>) -> Self {
        self.lock = self.lock.within(wait);
        self
    }

    /// What holders are called, for backends that show it to others.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.lock = self.lock.label(label);
        self
    }

    /// For how long a permit is valid unless it is renewed, which happens by itself. The default
    /// is the backend's.
    pub fn ttl(mut self, ttl: Duration) -> Self
    where
        B: LeaseBackend,
    {
        self.lock = self.lock.ttl(ttl);
        self
    }

    /// How many permits there are.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.permits.len()
    }

    /// The semaphore's name.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// The locks that are its permits, for plain SQL that takes part: `3/imports` in the namespace
    /// `sqlock.semaphore` is the fourth permit of `imports`.
    ///
    /// ```
    /// # use sqlock_core::{AdvisoryId, Locks, MemoryBackend};
    /// // SELECT ('x' || md5('16:sqlock.semaphore3/imports'))::bit(64)::bigint
    /// # let locks = Locks::new(MemoryBackend::new());
    /// let imports = locks.semaphore("imports", 5)?;
    /// assert_eq!(imports.keys()[3].id(), AdvisoryId::Bigint(-4092689356924445323));
    /// # Ok::<(), sqlock_core::Error>(())
    /// ```
    #[must_use]
    pub fn keys(&self) -> &[LockKey] {
        &self.permits
    }

    /// A permit if one is free, or `None`: each was taken at the moment when it was looked at.
    /// They are looked at one after another from a random one on, so that a refusal takes a
    /// request for each.
    ///
    /// # Errors
    ///
    /// Whatever the backend documents.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropped at any point, nothing stays held.
    pub async fn try_acquire(&self) -> Granted<B> {
        let start = chance::below(self.permits.len());
        for number in 0..self.permits.len() {
            if let Some(permit) = self.permit(start + number).try_acquire().await? {
                return Ok(Some(permit));
            }
        }
        Ok(None)
    }

    /// Waits for a permit.
    ///
    /// Those of one process are served in the order in which they began to wait, and only the
    /// first of them asks the backend. Between processes it is the backend that is as fair as with
    /// a lock.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] where the budget ran out, and whatever the backend documents. Nothing is
    /// held then.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropped at any point, nothing stays held or waited for.
    pub async fn acquire(&self) -> Result<LockGuard<B::Held>> {
        self.acquire_within(self.lock.wait).await
    }

    /// Waits for a permit within a budget, errors and reconnections included.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_within(&self, wait: impl Into<Wait>) -> Result<LockGuard<B::Held>> {
        let started = Instant::now();
        let deadline = wait.into().start();
        match deadline.bound(self.wait(deadline)).await {
            Some(Ok(Some(permit))) => Ok(permit),
            Some(Err(error)) if !matches!(error, Error::Timeout { .. }) => Err(error),
            _ => Err(Error::Timeout {
                key: self.key.clone(),
                waited: started.elapsed(),
            }),
        }
    }

    /// Waits for a permit and runs `body` with it. The body is stopped at its current `await`
    /// where the permit is lost.
    ///
    /// # Errors
    ///
    /// The body's own; [`Error::Lost`] where the permit was lost; and those of
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// The body is dropped where it is, and the permit is returned.
    pub async fn with_permit<T, E>(
        &self,
        body: impl AsyncFnOnce(&mut LockGuard<B::Held>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<Error>,
    {
        run(self.acquire().await?, body).await
    }

    async fn wait(&self, deadline: Deadline) -> Granted<B> {
        if self.line.is_empty()
            && let Look::Granted(permit) = self.look().await?
        {
            return Ok(Some(permit));
        }
        let _first = self.line.first().await;
        loop {
            let look = self.look().await?;
            if let Look::Granted(permit) = look {
                return Ok(Some(permit));
            }
            match self.watch(deadline).await {
                Ok(Some(permit)) => return Ok(Some(permit)),
                Ok(None) if deadline.has_passed() => return Ok(None),
                Ok(None) => {}
                // one of several attempts that ran out of time, say on its way to a connection
                Err(error)
                    if matches!(look, Look::Taken)
                        && error.is_retryable()
                        && deadline.has_passed() =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// As a try. What may go away is left to those who can wait for that.
    async fn look(&self) -> Result<Look<B>> {
        match self.try_acquire().await {
            Ok(Some(permit)) => Ok(Look::Granted(permit)),
            Ok(None) => Ok(Look::Taken),
            Err(error) if error.is_retryable() => Ok(Look::Unknown),
            Err(error) => Err(error),
        }
    }

    /// Waits for a permit to come free, by the backend's own way of waiting, which misses none.
    /// Gives up after a while where it cannot wait for all of them.
    async fn watch(&self, deadline: Deadline) -> Granted<B> {
        let watched = self.permits.len().min(WATCHED);
        let deadline = if watched < self.permits.len() {
            let next_look = Instant::now() + chance::up_to(UNTIL_NEXT_LOOK);
            let until = deadline.instant().map_or(next_look, |at| at.min(next_look));
            Wait::until(until).start()
        } else {
            deadline
        };
        let start = chance::below(self.permits.len());
        let permits = (start..start + watched).map(|number| self.permit(number));
        let attempts = permits.map(|permit| async move { permit.ask(Some(deadline)).await });
        first_of(attempts).await
    }

    fn permit(&self, number: usize) -> Lock<B> {
        let key = self.permits[number % self.permits.len()].clone();
        Lock {
            keys: Ok(Arc::from([key])),
            ..self.lock.clone()
        }
    }
}

impl<B: LockBackend> Clone for Semaphore<B> {
    fn clone(&self) -> Self {
        Self {
            lock: self.lock.clone(),
            key: self.key.clone(),
            permits: Arc::clone(&self.permits),
            line: Arc::clone(&self.line),
        }
    }
}

impl<B: LockBackend> fmt::Debug for Semaphore<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("key", &self.key)
            .field("permits", &self.permits.len())
            .finish_non_exhaustive()
    }
}
