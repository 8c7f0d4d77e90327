use std::{fmt, future::IntoFuture, time::Duration};

use tokio::time::Instant;

use crate::{FencingToken, Held, Leased, LockKey, Lost, Result, Transactional};

/// A held lock. Dropping it releases the lock.
///
/// [`release`](Self::release) waits until the lock is free; a drop starts the release and does not
/// wait. Either way the lock's work must be over: whatever still runs, runs without the lock.
///
/// A guard must be bound to a name. These three drop it at once, and no lint catches the last two:
///
/// ```
/// # use sqlock_core::{Locks, MemoryBackend};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
/// # let locks = Locks::new(MemoryBackend::new());
/// let _ = locks.acquire("a").await?;                      // released before the next line
/// if let Some(_) = locks.try_acquire("a").await? {}       // released before the block
/// if locks.try_acquire("a").await?.is_some() {}           // released before the block
///
/// let guard = locks.acquire("a").await?;                  // held until `guard` goes out of scope
/// # Ok(()) }
/// ```
#[must_use = "the lock is released as soon as this is dropped; bind it: `let guard = …`, not `let _ = …`"]
#[clippy::has_significant_drop]
pub struct LockGuard<H: Held> {
    held: H,
    armed: bool,
    granted: Instant,
}

impl<H: Held> LockGuard<H> {
    /// For backends: a guard that ends `held` when it is dropped.
    pub fn arm(held: H) -> Self {
        Self {
            held,
            armed: true,
            granted: Instant::now(),
        }
    }

    /// The keys that are held, in the order in which they were taken.
    #[must_use]
    pub fn keys(&self) -> &[LockKey] {
        self.held.keys()
    }

    /// The key that is held; the first of several.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.held.keys()[0]
    }

    /// The fencing token of this acquisition, or `None` where the backend offers none.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.held.token()
    }

    /// Tells when the lock is lost.
    pub fn lost(&self) -> Lost {
        self.held.lost()
    }

    /// `Ok` while the lock is not known to be lost.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) with the cause.
    pub fn check(&self) -> Result<()> {
        self.held.lost().check()
    }

    /// Runs `work`, and stops it where the lock is lost first.
    ///
    /// Where `work` needs the guard itself, use `guard.lost().protect(work)`.
    ///
    /// ```
    /// # use sqlock_core::{Locks, MemoryBackend};
    /// # async fn write_report() -> u32 { 7 }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
    /// # let locks = Locks::new(MemoryBackend::new());
    /// let guard = locks.acquire("daily-report").await?;
    /// let pages = guard.protect(write_report()).await?;
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) where the lock was lost before `work` was done.
    ///
    /// # Cancel safety
    ///
    /// As safe as `work`; the lock stays held.
    pub async fn protect<F: IntoFuture>(&self, work: F) -> Result<F::Output> {
        self.held.lost().protect(work).await
    }

    /// Releases the lock, and returns when it is free for others. In a transaction's guard this
    /// commits.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) where the lock was lost before it was released, so that
    /// another may have held it meanwhile. Whatever the error, the lock does not stay held.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropped at any point, the lock is released all the same.
    pub async fn release(mut self) -> Result<()> {
        self.held.release().await?;
        self.disarm();
        self.report("released");
        Ok(())
    }

    /// Ends the lock and undoes what can be undone: a transaction's guard rolls back, others are
    /// released.
    ///
    /// # Errors
    ///
    /// As [`release`](Self::release).
    ///
    /// # Cancel safety
    ///
    /// As [`release`](Self::release).
    pub async fn roll_back(mut self) -> Result<()> {
        self.held.roll_back().await?;
        self.disarm();
        self.report("rolled back");
        Ok(())
    }

    /// The connection in whose transaction the lock is held.
    // a parameter, since a return type that names the trait gets an answer of the compiler's own
    pub fn connection<C: ?Sized>(&mut self) -> &mut C
    where
        H: Transactional<Connection = C>,
    {
        self.held.connection()
    }

    /// Commits the transaction, and with it ends the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`](crate::Error::Aborted), [`Error::Lost`](crate::Error::Lost) or
    /// [`Error::CommitUnknown`](crate::Error::CommitUnknown); never `Ok` unless the work is there.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, the work may be committed or not. The lock ends either way.
    pub async fn commit(self) -> Result<()>
    where
        H: Transactional,
    {
        self.release().await
    }

    /// How long the lease is still valid for certain, by this process's monotonic clock.
    #[must_use]
    pub fn remaining(&self) -> Duration
    where
        H: Leased,
    {
        self.held.remaining()
    }

    /// Whether the lease is valid for certain, at this moment. It turns false by itself.
    #[must_use]
    pub fn is_valid(&self) -> bool
    where
        H: Leased,
    {
        self.held.is_valid()
    }

    /// Makes the lease valid for `ttl` from now.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) where it has run out.
    ///
    /// # Cancel safety
    ///
    /// Safe: the lease is valid for as long as before, or longer.
    pub async fn extend(&mut self, ttl: Duration) -> Result<()>
    where
        H: Leased,
    {
        self.held.extend(ttl).await
    }

    /// For backends: what the guard owns.
    #[must_use]
    pub fn held(&self) -> &H {
        &self.held
    }

    /// For backends: what the guard owns. Ending it by hand is safe, as the guard's drop ends it
    /// again and backends allow for that.
    pub fn held_mut(&mut self) -> &mut H {
        &mut self.held
    }

    pub(crate) fn disarm(&mut self) {
        self.armed = false;
    }

    fn report(&self, how: &'static str) {
        let (backend, key) = (self.held.backend(), self.key());
        let held = self.granted.elapsed();
        tracing::debug!(backend, %key, id = %key.id(), ?held, how, "lock ended");
    }
}

impl<H: Held> Drop for LockGuard<H> {
    fn drop(&mut self) {
        if self.armed {
            self.held.abandon();
            self.report("dropped");
        }
    }
}

impl<H: Held> fmt::Debug for LockGuard<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("keys", &self.keys())
            .finish_non_exhaustive()
    }
}
