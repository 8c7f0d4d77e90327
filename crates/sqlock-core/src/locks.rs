use std::{fmt, sync::Arc};

use crate::{
    Election, Error, Holder, InspectBackend, IntoLockKey, IntoLockKeys, InvalidKey, KeyVisibility,
    LeaseTerms, Lock, LockBackend, LockGuard, LockKey, QueueBackend, Queued, ReadWrite, Result,
    Semaphore, TellsLoss, Wait, WritersFirst, names::in_lock_order, semaphore::Lines,
};

/// The locks of one backend: what an application holds on to. Cheap to clone.
///
/// ```
/// # use sqlock_core::{Locks, MemoryBackend, Result};
/// # async fn write_report() {}
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<()> {
/// let locks = Locks::new(MemoryBackend::new());
///
/// // once across the fleet, or not at all
/// let Some(guard) = locks.try_acquire("daily-report").await? else { return Ok(()) };
/// write_report().await;
/// guard.release().await?;
///
/// // the same in one call: `None` where another node has it
/// let done = locks.run_once("daily-report", async |_| Ok::<_, sqlock_core::Error>(7)).await?;
/// assert_eq!(done, Some(7));
/// # Ok(()) }
/// ```
pub struct Locks<B: LockBackend> {
    backend: Arc<B>,
    defaults: Defaults,
    lines: Arc<Lines>,
}

#[derive(Debug, Clone)]
struct Defaults {
    namespace: Option<Arc<str>>,
    wait: Wait,
    label: Option<Arc<str>>,
    visibility: KeyVisibility,
}

impl<B: LockBackend> Locks<B> {
    /// The locks of `backend`, with the defaults of [`Locks::builder`].
    pub fn new(backend: B) -> Self {
        Self::builder(backend).build()
    }

    /// The locks of `backend`, with options.
    pub fn builder(backend: B) -> LocksBuilder<B> {
        LocksBuilder {
            backend,
            defaults: Defaults {
                namespace: None,
                wait: Wait::forever(),
                label: None,
                visibility: KeyVisibility::default(),
            },
        }
    }

    /// The backend itself.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Names a lock, to be taken with options.
    pub fn lock(&self, key: impl IntoLockKey) -> Lock<B> {
        self.lock_keys(key.into_lock_key().map(|key| vec![key]))
    }

    /// Names several locks, to be taken together.
    pub fn lock_all(&self, keys: impl IntoLockKeys) -> Lock<B> {
        self.lock_keys(keys.into_lock_keys())
    }

    /// Takes the lock if it is free, or gives `None` where another has it. Does not wait.
    ///
    /// The guard must be bound: `if let Some(_) = locks.try_acquire(…)` and `.is_some()` drop it,
    /// and with it the lock, at once.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`], and whatever the backend documents.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropped at any point, nothing stays held.
    pub async fn try_acquire(&self, key: impl IntoLockKey) -> Result<Option<LockGuard<B::Held>>> {
        self.lock(key).try_acquire().await
    }

    /// Waits for the lock, for as long as the default says: forever, unless the builder was told
    /// otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`], [`Error::Timeout`], and whatever the backend documents.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropped at any point, nothing stays held or waited for.
    pub async fn acquire(&self, key: impl IntoLockKey) -> Result<LockGuard<B::Held>> {
        self.lock(key).acquire().await
    }

    /// Waits for the lock within a budget, errors and reconnections included.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_within(
        &self,
        key: impl IntoLockKey,
        wait: impl Into<Wait>,
    ) -> Result<LockGuard<B::Held>> {
        self.lock(key).within(wait).acquire().await
    }

    /// Waits until all of the locks can be had together, and takes them with one guard.
    ///
    /// Nothing is held while it waits, so that two callers who name the same locks in different
    /// orders cannot block each other. The loss of one is the loss of all.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`InvalidKey::NoKeys`].
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_all(&self, keys: impl IntoLockKeys) -> Result<LockGuard<B::Held>> {
        self.lock_all(keys).acquire().await
    }

    /// Runs `body` if the lock is free, and gives `None` where another has it: once across the
    /// fleet. The body is stopped at its current `await` where the lock is lost.
    ///
    /// # Errors
    ///
    /// As [`Lock::run_once`].
    ///
    /// # Cancel safety
    ///
    /// The body is dropped where it is, and the lock is released.
    pub async fn run_once<T, E>(
        &self,
        key: impl IntoLockKey,
        body: impl AsyncFnOnce(&mut LockGuard<B::Held>) -> Result<T, E>,
    ) -> Result<Option<T>, E>
    where
        E: From<Error>,
    {
        self.lock(key).run_once(body).await
    }

    /// Waits for the lock and runs `body` under it. The body is stopped at its current `await`
    /// where the lock is lost.
    ///
    /// # Errors
    ///
    /// As [`Lock::with_lock`].
    ///
    /// # Cancel safety
    ///
    /// The body is dropped where it is, and the lock is released.
    pub async fn with_lock<T, E>(
        &self,
        key: impl IntoLockKey,
        body: impl AsyncFnOnce(&mut LockGuard<B::Held>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<Error>,
    {
        self.lock(key).with_lock(body).await
    }

    /// `permits` permits under one name: at most so many hold one at the same time.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`], also where the name leaves no room for a permit's number in 512
    /// bytes; [`Error::InvalidOption`] where there are no permits or more than a thousand, and
    /// where the same semaphore is there with another number of them, in these `Locks` or a clone.
    pub fn semaphore(&self, key: impl IntoLockKey, permits: usize) -> Result<Semaphore<B>> {
        Semaphore::new(self.lock(key), permits, &self.lines)
    }

    /// A lock for many readers or one writer, whose guards tell which they are.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`].
    pub fn read_write(&self, key: impl IntoLockKey) -> Result<ReadWrite<B>>
    where
        B: WritersFirst,
    {
        ReadWrite::new(self.lock(key))
    }

    /// One of the nodes that stand for election under this name leads at a time.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`].
    pub fn election(&self, key: impl IntoLockKey) -> Result<Election<B>>
    where
        B: TellsLoss,
    {
        Election::new(self.lock(key))
    }

    /// Those who hold the lock at this moment; empty where it is free.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`], and where the server cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn inspect(&self, key: impl IntoLockKey) -> Result<Vec<Holder>>
    where
        B: InspectBackend,
    {
        let keys = self.resolve(key.into_lock_key().map(|key| vec![key]))?;
        self.backend.holders(&keys[0]).await
    }

    /// Who waits for the lock, over all processes, the first in line first. Those who wait in this
    /// process are marked: theirs is the place that a waiter asks for.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`], and where the server cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn queue(&self, key: impl IntoLockKey) -> Result<Vec<Queued>>
    where
        B: QueueBackend,
    {
        let keys = self.resolve(key.into_lock_key().map(|key| vec![key]))?;
        self.backend.queue(&keys[0]).await
    }

    /// Releases all that is held, tells the guards so, and waits until the server has confirmed
    /// it. Requests after that, and those that wait, get [`Error::ShutDown`].
    ///
    /// # Errors
    ///
    /// Where the release could not be confirmed; the connection is closed all the same.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, the shut-down goes on.
    pub async fn shutdown(&self) -> Result<()> {
        self.backend.shutdown().await
    }

    fn lock_keys(&self, keys: Result<Vec<LockKey>, InvalidKey>) -> Lock<B> {
        Lock {
            backend: Arc::clone(&self.backend),
            keys: self.resolve(keys).map(Arc::from),
            wait: self.defaults.wait,
            label: self.defaults.label.clone(),
            visibility: self.defaults.visibility,
            acquire_shared: None,
            lease: LeaseTerms::default(),
            priority: 0,
        }
    }

    fn resolve(&self, keys: Result<Vec<LockKey>, InvalidKey>) -> Result<Vec<LockKey>, InvalidKey> {
        let keys = match &self.defaults.namespace {
            None => keys?,
            Some(namespace) => keys?
                .into_iter()
                .map(|key| key.with_default_namespace(namespace))
                .collect::<Result<_, _>>()?,
        };
        in_lock_order(keys)
    }

    pub(crate) fn map_backend<C: LockBackend>(self, map: impl FnOnce(Arc<B>) -> C) -> Locks<C> {
        Locks {
            backend: Arc::new(map(self.backend)),
            defaults: self.defaults,
            lines: self.lines,
        }
    }
}

impl<B: LockBackend> Clone for Locks<B> {
    fn clone(&self) -> Self {
        Self {
            backend: Arc::clone(&self.backend),
            defaults: self.defaults.clone(),
            lines: Arc::clone(&self.lines),
        }
    }
}

impl<B: LockBackend> fmt::Debug for Locks<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks")
            .field("backend", &self.backend)
            .field("defaults", &self.defaults)
            .finish_non_exhaustive()
    }
}

/// Options for [`Locks`], each of which a [`Lock`] can override.
///
/// ```
/// # use sqlock_core::{Locks, MemoryBackend};
/// # use std::time::Duration;
/// let locks = Locks::builder(MemoryBackend::new())
///     .namespace("billing")
///     .within(Duration::from_secs(30))
///     .build();
/// ```
#[derive(Debug)]
#[must_use = "options do nothing until `build` is called"]
pub struct LocksBuilder<B: LockBackend> {
    backend: B,
    defaults: Defaults,
}

impl<B: LockBackend> LocksBuilder<B> {
    /// Puts every named key into this namespace, so that applications that share a database do
    /// not meet by accident. Keys that are numbers, or have a namespace, stay as they are. The
    /// default is none.
    ///
    /// An invalid namespace surfaces as [`Error::InvalidKey`] at the verbs.
    pub fn namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        self.defaults.namespace = Some(namespace.into());
        self
    }

    /// How long `acquire` waits. The default is for as long as it takes.
    pub fn within(mut self, wait: impl Into<Wait>) -> Self {
        self.defaults.wait = wait.into();
        self
    }

    /// What holders are called, for backends that show it to others. The default is none.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.defaults.label = Some(label.into());
        self
    }

    /// Where the names of keys may be logged. The default is at debug level and below.
    pub fn key_visibility(mut self, visibility: KeyVisibility) -> Self {
        self.defaults.visibility = visibility;
        self
    }

    /// The locks.
    #[must_use]
    pub fn build(self) -> Locks<B> {
        Locks {
            backend: Arc::new(self.backend),
            defaults: self.defaults,
            lines: Arc::default(),
        }
    }
}
