use std::{fmt, ops::Deref, sync::Arc};

use crate::{Error, Held, Lock, LockBackend, LockGuard, LockKey, Result, Wait, WritersFirst};

/// A lock for many readers or one writer, whose guards tell which they are. Made by
/// [`Locks::read_write`](crate::Locks::read_write).
///
/// ```
/// # use sqlock_core::{Locks, MemoryBackend};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
/// # let locks = Locks::new(MemoryBackend::new());
/// let catalog = locks.read_write("catalog")?;
///
/// let (one, other) = (catalog.read().await?, catalog.read().await?);
/// assert!(catalog.try_write().await?.is_none());
/// drop((one, other));
///
/// let writer = catalog.write().await?;
/// assert!(catalog.try_read().await?.is_none());
/// writer.release().await?;
/// # Ok(()) }
/// ```
///
/// A writer that waits is not starved by readers that come all the time: those who come later wait
/// for it. So a reader must not wait for a second read lock of the same name while it has one.
///
/// It is the same lock as [`Locks::lock`](crate::Locks::lock) names: a writer has it exclusively,
/// and readers have it in shared mode.
#[must_use = "nothing is locked until it is read or written"]
pub struct ReadWrite<B: LockBackend> {
    lock: Lock<B>,
    key: LockKey,
}

impl<B: WritersFirst> ReadWrite<B> {
    pub(crate) fn new(lock: Lock<B>) -> Result<Self> {
        let key = lock.keys.as_ref().map_err(Clone::clone)?[0].clone();
        Ok(Self { lock, key })
    }

    /// How long [`read`](Self::read) and [`write`](Self::write) wait. The default is that of
    /// [`Locks`](crate::Locks), which is for as long as it takes.
    pub fn within(mut self, wait: impl Into<Wait>) -> Self {
        self.lock = self.lock.within(wait);
        self
    }

    /// What holders are called, for backends that show it to others.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.lock = self.lock.label(label);
        self
    }

    /// The lock's name.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// A reader's lock, or `None` where a writer has it or waits for it. Does not wait.
    ///
    /// # Errors
    ///
    /// Whatever the backend documents.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropped at any point, nothing stays held.
    pub async fn try_read(&self) -> Result<Option<ReadGuard<B::Held>>> {
        let guard = self.lock.clone().shared().try_acquire().await?;
        Ok(guard.map(ReadGuard))
    }

    /// Waits until no writer has it, or waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] where the budget ran out, and whatever the backend documents. Nothing is
    /// held then.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropped at any point, nothing stays held or waited for.
    pub async fn read(&self) -> Result<ReadGuard<B::Held>> {
        self.lock.clone().shared().acquire().await.map(ReadGuard)
    }

    /// A writer's lock, or `None` where anybody has it. Does not wait.
    ///
    /// # Errors
    ///
    /// As [`try_read`](Self::try_read).
    ///
    /// # Cancel safety
    ///
    /// As [`try_read`](Self::try_read).
    pub async fn try_write(&self) -> Result<Option<WriteGuard<B::Held>>> {
        Ok(self.lock.clone().try_acquire().await?.map(WriteGuard))
    }

    /// Waits until nobody has it. Readers who come later wait behind.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read). Readers behind it go on then.
    pub async fn write(&self) -> Result<WriteGuard<B::Held>> {
        self.lock.clone().acquire().await.map(WriteGuard)
    }
}

/// A reader's lock. Dropping it releases the lock.
///
/// It cannot be made a writer's: two readers that both did so would wait for each other for ever.
/// Release it, take the lock as a writer, and look again at what was read.
#[must_use = "the lock is released as soon as this is dropped; bind it: `let guard = …`, not `let _ = …`"]
#[clippy::has_significant_drop]
pub struct ReadGuard<H: Held>(LockGuard<H>);

/// The writer's lock. Dropping it releases the lock.
///
/// A function that must not be called by a reader takes a `&WriteGuard`.
#[must_use = "the lock is released as soon as this is dropped; bind it: `let guard = …`, not `let _ = …`"]
#[clippy::has_significant_drop]
pub struct WriteGuard<H: Held>(LockGuard<H>);

macro_rules! guard_of_a_kind {
    ($guard:ident) => {
        impl<H: Held> $guard<H> {
            /// Releases the lock, and returns when it is released.
            ///
            /// # Errors
            ///
            /// [`Error::Lost`] where the lock was lost before. Whatever the error, the lock does
            /// not stay held.
            ///
            /// # Cancel safety
            ///
            /// Safe: dropped at any point, the lock is released all the same.
            pub async fn release(self) -> Result<(), Error> {
                self.0.release().await
            }

            /// The guard of no kind.
            pub fn into_guard(self) -> LockGuard<H> {
                self.0
            }
        }

        impl<H: Held> Deref for $guard<H> {
            type Target = LockGuard<H>;

            fn deref(&self) -> &LockGuard<H> {
                &self.0
            }
        }

        impl<H: Held> fmt::Debug for $guard<H> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let keys = self.0.keys();
                f.debug_struct(stringify!($guard))
                    .field("keys", &keys)
                    .finish_non_exhaustive()
            }
        }
    };
}

guard_of_a_kind!(ReadGuard);
guard_of_a_kind!(WriteGuard);

impl<B: LockBackend> Clone for ReadWrite<B> {
    fn clone(&self) -> Self {
        Self {
            lock: self.lock.clone(),
            key: self.key.clone(),
        }
    }
}

impl<B: LockBackend> fmt::Debug for ReadWrite<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadWrite")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
