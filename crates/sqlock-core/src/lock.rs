use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tracing::Instrument;

use crate::{
    Deadline, Error, Held, InvalidKey, KeyVisibility, LeaseBackend, LeaseTerms, LockBackend,
    LockGuard, LockKey, Mode, QueueBackend, Request, Result, SharedBackend, Wait,
};

/// A lock that is named and not yet taken: options first, then one of the verbs.
///
/// ```
/// # use sqlock_core::{Locks, MemoryBackend};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
/// # let locks = Locks::new(MemoryBackend::new());
/// let guard = locks.lock("invoice/42").shared().within(Duration::from_secs(5)).await?;
/// # guard.release().await }
/// ```
#[must_use = "naming a lock does not take it: await it, or call `try_acquire`, `run_once` or `with_lock`"]
pub struct Lock<B: LockBackend> {
    pub(crate) backend: Arc<B>,
    pub(crate) keys: Result<Arc<[LockKey]>, InvalidKey>,
    pub(crate) wait: Wait,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) visibility: KeyVisibility,
    pub(crate) acquire_shared: Option<AcquireShared<B>>,
    pub(crate) lease: LeaseTerms,
    pub(crate) priority: i16,
}

type Answer<'a, B> =
    Pin<Box<dyn Future<Output = Result<Option<LockGuard<<B as LockBackend>::Held>>>> + Send + 'a>>;
/// Kept as a function, so that only [`Lock::shared`] needs the bound.
pub(crate) type AcquireShared<B> = for<'a> fn(&'a B, Request) -> Answer<'a, B>;

impl<B: LockBackend> Lock<B> {
    /// Gives up after this long. The default is that of [`Locks`](crate::Locks), which is to wait
    /// for as long as it takes.
    pub fn within(mut self, wait: impl Into<Wait>) -> Self {
        self.wait = wait.into();
        self
    }

    /// What the holder is called, for backends that show it to others.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Takes the lock beside other shared holders, and excludes exclusive ones.
    pub fn shared(mut self) -> Self
    where
        B: SharedBackend,
    {
        self.acquire_shared = Some(|backend, request| backend.acquire_shared(request));
        self
    }

    /// For how long the lease is valid unless it is renewed, which happens by itself. The default
    /// is the backend's.
    pub fn ttl(mut self, ttl: Duration) -> Self
    where
        B: LeaseBackend,
    {
        self.lease.ttl = Some(ttl);
        self
    }

    /// For how long the lease stays taken from its acquisition on, even if it is released before:
    /// for jobs that are shorter than the differences of the nodes' schedules. The default is the
    /// backend's.
    pub fn hold_at_least(mut self, duration: Duration) -> Self
    where
        B: LeaseBackend,
    {
        self.lease.hold_at_least = Some(duration);
        self
    }

    /// What the holder writes for others to read. The default is nothing.
    pub fn payload(mut self, payload: impl Into<Arc<str>>) -> Self
    where
        B: LeaseBackend,
    {
        self.lease.payload = Some(payload.into());
        self
    }

    /// Waits before all who have a lower priority, and behind those who have a higher one; those
    /// who have the same wait in order of arrival. The default is 0.
    pub fn priority(mut self, priority: i16) -> Self
    where
        B: QueueBackend,
    {
        self.priority = priority;
        self
    }

    /// Takes the lock if it is free, or gives `None` where another has it. Does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`], and whatever the backend documents.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropped at any point, nothing stays held.
    pub async fn try_acquire(self) -> Result<Option<LockGuard<B::Held>>> {
        self.ask(None).await
    }

    /// Waits for the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] where the budget ran out, [`Error::InvalidKey`], and whatever the backend
    /// documents. Nothing is held then.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropped at any point, nothing stays held or waited for.
    pub async fn acquire(self) -> Result<LockGuard<B::Held>> {
        let started = Instant::now();
        let deadline = self.wait.start();
        match self.ask(Some(deadline)).await? {
            Some(guard) => Ok(guard),
            None => Err(Error::Timeout {
                key: self.keys?[0].clone(),
                waited: started.elapsed(),
            }),
        }
    }

    /// Runs `body` if the lock is free, and gives `None` where another has it.
    ///
    /// The body is stopped at its current `await` where the lock is lost.
    ///
    /// # Errors
    ///
    /// The body's own; [`Error::Lost`] where the lock was lost; and those of
    /// [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    ///
    /// The body is dropped where it is, and the lock is released.
    pub async fn run_once<T, E>(
        self,
        body: impl AsyncFnOnce(&mut LockGuard<B::Held>) -> Result<T, E>,
    ) -> Result<Option<T>, E>
    where
        E: From<Error>,
    {
        match self.try_acquire().await? {
            None => Ok(None),
            Some(guard) => run(guard, body).await.map(Some),
        }
    }

    /// Waits for the lock and runs `body` under it.
    ///
    /// The lock ends with the body: normally where it gives `Ok`, and rolled back, by backends
    /// whose locks carry work, where it gives `Err`.
    ///
    /// # Errors
    ///
    /// The body's own; [`Error::Lost`] where the lock was lost; and those of
    /// [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`run_once`](Self::run_once).
    pub async fn with_lock<T, E>(
        self,
        body: impl AsyncFnOnce(&mut LockGuard<B::Held>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<Error>,
    {
        run(self.acquire().await?, body).await
    }

    pub(crate) async fn ask(
        &self,
        deadline: Option<Deadline>,
    ) -> Result<Option<LockGuard<B::Held>>> {
        let keys = Arc::clone(self.keys.as_ref().map_err(Clone::clone)?);
        let mode = match self.acquire_shared {
            Some(_) => Mode::Shared,
            None => Mode::Exclusive,
        };
        let span = tracing::debug_span!(
            "acquire",
            backend = self.backend.name(),
            key = %keys[0],
            id = %keys[0].id(),
            keys = keys.len(),
            mode = mode.as_str(),
            wait = deadline.is_some(),
        );
        let request = Request::new(keys, mode, deadline, self.label.clone(), self.visibility)
            .with_lease(self.lease.clone())
            .with_priority(self.priority);
        self.ask_within(request).instrument(span).await
    }

    async fn ask_within(&self, request: Request) -> Result<Option<LockGuard<B::Held>>> {
        let started = Instant::now();
        let key = request.first_key().clone();
        let backend = self.backend.name();
        let waits = request.deadline().is_some();
        let mut acquire = match self.acquire_shared {
            Some(acquire_shared) => acquire_shared(&self.backend, request),
            None => self.backend.acquire(request),
        };
        let answer = tokio::select! {
            biased;
            answer = &mut acquire => answer,
            () = sleep(WAIT_IS_TOLD_AFTER), if waits => {
                let (id, waited) = (key.id(), started.elapsed());
                tracing::debug!(backend, %key, %id, ?waited, "lock awaited");
                acquire.await
            }
        };
        let (id, waited) = (key.id(), started.elapsed());
        match &answer {
            Ok(Some(_)) => tracing::debug!(backend, %key, %id, ?waited, "lock granted"),
            Ok(None) => tracing::debug!(backend, %key, %id, ?waited, "lock refused"),
            Err(error) => tracing::debug!(backend, %key, %id, ?waited, %error, "acquire failed"),
        }
        answer
    }
}

/// A wait that is over before that is told by its end alone.
const WAIT_IS_TOLD_AFTER: Duration = Duration::from_millis(100);

pub(crate) async fn run<H: Held, T, E: From<Error>>(
    mut guard: LockGuard<H>,
    body: impl AsyncFnOnce(&mut LockGuard<H>) -> Result<T, E>,
) -> Result<T, E> {
    let lost = guard.lost();
    match lost.protect(body(&mut guard)).await? {
        Ok(value) => {
            guard.release().await?;
            Ok(value)
        }
        Err(error) => {
            // the body's error is the one to tell; the guard's drop sees to the lock
            if let Err(failed) = guard.roll_back().await {
                tracing::debug!(%failed, "roll-back after a failed body failed too");
            }
            Err(error)
        }
    }
}

impl<B: LockBackend> IntoFuture for Lock<B> {
    type Output = Result<LockGuard<B::Held>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

impl<B: LockBackend> Clone for Lock<B> {
    fn clone(&self) -> Self {
        Self {
            backend: Arc::clone(&self.backend),
            keys: self.keys.clone(),
            wait: self.wait,
            label: self.label.clone(),
            visibility: self.visibility,
            acquire_shared: self.acquire_shared,
            lease: self.lease.clone(),
            priority: self.priority,
        }
    }
}

impl<B: LockBackend> fmt::Debug for Lock<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("keys", &self.keys)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
