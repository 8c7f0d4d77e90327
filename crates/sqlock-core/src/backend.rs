use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;

use crate::{FencingToken, Holder, LockGuard, LockKey, Lost, Queued, Request, Result};

/// Something that can hold locks: what a backend has to provide.
///
/// A backend keeps these rules, and the suite of `sqlock-conformance` shows that it does:
///
/// - A guard is armed before the lock can be held: whatever await a future is dropped at, nothing
///   stays held. The way that works is a task that owns the connection and answers with a guard,
///   so that an answer that nobody takes releases itself.
/// - One deadline covers the whole of an acquire. After an error nothing of the request is held.
/// - A lock that is lost is reported as lost through [`Held::lost`].
#[async_trait]
pub trait LockBackend: Debug + Send + Sync + 'static {
    /// What this backend's guards hold.
    type Held: Held;

    /// For errors and spans.
    fn name(&self) -> &'static str;

    /// All of the request's keys, or `None` where one of them is held elsewhere until the deadline
    /// (at once, where the request has none).
    ///
    /// # Errors
    ///
    /// As the backend documents. Nothing of the request is held then.
    ///
    /// # Cancel safety
    ///
    /// Must be safe: nothing is held once the future is dropped, or soon after.
    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<Self::Held>>>;

    /// Releases all that is held, tells the guards so ([`LossCause::ShutDown`]), waits until the
    /// server has confirmed it, and refuses further requests.
    ///
    /// [`LossCause::ShutDown`]: crate::LossCause::ShutDown
    ///
    /// Where a guard owns what it holds, as a transaction's does, it waits until the guard's owner
    /// has ended it.
    ///
    /// # Errors
    ///
    /// Where the release could not be confirmed; the connection is closed all the same.
    async fn shutdown(&self) -> Result<()>;
}

/// Backends with a shared mode: many readers, or one writer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no shared mode",
    note = "advisory locks have one; leases are exclusive"
)]
#[async_trait]
pub trait SharedBackend: LockBackend {
    /// As [`LockBackend::acquire`], beside other shared holders.
    ///
    /// # Errors
    ///
    /// As [`LockBackend::acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`LockBackend::acquire`].
    async fn acquire_shared(&self, request: Request) -> Result<Option<LockGuard<Self::Held>>>;
}

/// Backends that tell of a loss by themselves, soon after it happened or before.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not tell of a loss by itself",
    note = "a transaction learns of it at its next statement; elections need a backend that tells \
            it: session or ttl"
)]
pub trait TellsLoss: LockBackend {}

/// Backends of which a stream of readers does not starve a waiting writer: readers who come after
/// it wait for it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not promise a writer its turn among readers",
    note = "session locks and those in memory do; where there is a shared mode without that promise, \
            it is `locks.lock(…).shared()`"
)]
pub trait WritersFirst: SharedBackend {}

/// Backends that can tell who holds a lock.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot tell who holds a lock")]
#[async_trait]
pub trait InspectBackend: LockBackend {
    /// Those who hold the lock at this moment; empty where it is free.
    ///
    /// # Errors
    ///
    /// Where the server cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn holders(&self, key: &LockKey) -> Result<Vec<Holder>>;
}

/// Backends in which those who wait stand in line, over all processes: by priority, and then by
/// arrival.
#[diagnostic::on_unimplemented(
    message = "`{Self}` keeps no queue of those who wait",
    note = "leases do where they are asked to: `TtlOptions::queue`"
)]
#[async_trait]
pub trait QueueBackend: LockBackend {
    /// Those who wait for the lock at this moment, the first in line first.
    ///
    /// # Errors
    ///
    /// Where the server cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn queue(&self, key: &LockKey) -> Result<Vec<Queued>>;
}

/// A lock that is held: what a backend's guard owns.
///
/// Users meet it only as the type parameter of [`LockGuard`].
#[async_trait]
pub trait Held: Send + Sync + 'static {
    /// The name of the backend that holds it, for spans and events.
    fn backend(&self) -> &'static str;

    /// The keys that are held, in lock order; at least one.
    fn keys(&self) -> &[LockKey];

    /// The token of this acquisition, where the backend can keep a token's promise.
    fn token(&self) -> Option<FencingToken>;

    /// Tells when the lock is lost.
    fn lost(&self) -> Lost;

    /// Ends the lock normally. Calling it again after it was cancelled must not release somebody
    /// else's lock.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) where the lock was lost before.
    ///
    /// # Cancel safety
    ///
    /// Must be safe: the lock is held until the release happens, and it may happen.
    async fn release(&mut self) -> Result<()>;

    /// Ends the lock and undoes what can be undone. The same as [`release`](Self::release) unless
    /// the lock carries work.
    ///
    /// # Errors
    ///
    /// As [`release`](Self::release).
    async fn roll_back(&mut self) -> Result<()> {
        self.release().await
    }

    /// The drop path: starts the release and returns. Idempotent; never blocks, panics or needs a
    /// runtime.
    fn abandon(&mut self);
}

/// Locks that are a transaction, in which the user works.
#[diagnostic::on_unimplemented(
    message = "this lock is not a transaction: it has no connection, and nothing to commit",
    label = "only locks that are transactions have this",
    note = "end the lock with `release()`, and commit your work by a transaction of your own"
)]
pub trait Transactional: Held {
    /// The connection in whose transaction the lock is held.
    type Connection: ?Sized;

    /// The connection in whose transaction the lock is held.
    fn connection(&mut self) -> &mut Self::Connection;
}

/// Backends whose locks are leases, with a time to live for each.
#[diagnostic::on_unimplemented(
    message = "the locks of `{Self}` are not leases: they do not run out",
    note = "only a TTL backend has leases"
)]
pub trait LeaseBackend: LockBackend {}

/// Locks that run out: leases.
#[diagnostic::on_unimplemented(
    message = "this lock is not a lease: it does not run out",
    label = "only leases have this"
)]
#[async_trait]
pub trait Leased: Held {
    /// How long the lease is still valid for certain, by this process's monotonic clock; zero
    /// once it is lost.
    fn remaining(&self) -> Duration;

    /// Whether the lease is valid for certain, at this moment.
    fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Makes the lease valid for `ttl` from now.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) where it has run out.
    ///
    /// # Cancel safety
    ///
    /// Must be safe: the lease is valid for as long as before, or longer.
    async fn extend(&mut self, ttl: Duration) -> Result<()>;
}
