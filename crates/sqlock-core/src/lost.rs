use std::{
    fmt,
    future::{Future, IntoFuture, pending, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    task::Poll,
};

use tokio::{sync::Notify, time::Instant};

use crate::{Error, KeyVisibility, LockKey, Request, Result};

/// Why a lock was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// The connection that held the lock was closed, by the server or by the network.
    ConnectionClosed,
    /// The server did not answer within the heartbeat's limit.
    Unresponsive,
    /// The connection reached another server session, as it does through a transaction pooler.
    /// The lock may be orphaned on the session of this pid.
    SessionChanged {
        /// The server process in which the lock was taken.
        orphaned_pid: i32,
    },
    /// The server's answers no longer told whether the lock was held, so its session was closed.
    Undetermined,
    /// A statement of the lock's transaction failed, which undid it and freed the lock.
    TransactionAborted,
    /// The lock's transaction was ended by other SQL on its connection.
    TransactionEnded,
    /// The server ended the lock's transaction, which was idle, or open, for longer than it allows.
    TransactionTimedOut,
    /// The lease ran out before it was renewed.
    Expired,
    /// Another holder took the lease after it had run out.
    TakenOver,
    /// The lock's row or entry was removed by somebody else.
    Removed,
    /// [`Locks::shutdown`](crate::Locks::shutdown) released it.
    ShutDown,
    /// The leader of an [`Election`](crate::Election) stepped down: its lease was about to run out,
    /// or its term was ended. The lock itself need not be lost.
    SteppedDown,
    /// The runtime on which the backend lived was shut down.
    OwnerGone,
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConnectionClosed => "its connection was closed",
            Self::Unresponsive => "the server stopped answering",
            Self::SessionChanged { orphaned_pid } => {
                return write!(
                    f,
                    "its connection moved to another server session, as behind a transaction \
                     pooler; the lock may be orphaned on pid {orphaned_pid}"
                );
            }
            Self::Undetermined => "an error left it unknown whether it was held",
            Self::TransactionAborted => "a statement of its transaction failed",
            Self::TransactionEnded => "its transaction was ended by other sql on its connection",
            Self::TransactionTimedOut => {
                "the server's time limit for transactions, or for idle ones, ended it"
            }
            Self::Expired => "its lease ran out",
            Self::TakenOver => "its lease ran out and another holder took it",
            Self::Removed => "it was removed by somebody else",
            Self::ShutDown => "its backend was shut down",
            Self::SteppedDown => "its leader stepped down",
            Self::OwnerGone => "the runtime of its backend was shut down",
        })
    }
}

#[derive(Debug)]
enum End {
    Released,
    Lost(LossCause),
}

#[derive(Debug)]
struct Signal {
    backend: &'static str,
    keys: Arc<[LockKey]>,
    visibility: KeyVisibility,
    expiry: Option<Arc<dyn Expiry>>,
    granted: Instant,
    end: OnceLock<End>,
    ended: Notify,
}

/// For backends whose locks run out by themselves: asked whenever somebody looks at [`Lost`], so
/// that a process that was paused learns of it before it does anything else.
pub trait Expiry: fmt::Debug + Send + Sync + 'static {
    /// Why the lock is over by now, or `None` while it is not.
    fn expired(&self) -> Option<LossCause>;
}

impl Signal {
    /// How the lock ended, by now.
    fn look(&self) -> Option<&End> {
        if self.end.get().is_none()
            && let Some(cause) = self.expiry.as_ref().and_then(|expiry| expiry.expired())
        {
            self.end(End::Lost(cause));
        }
        self.end.get()
    }

    fn error(&self) -> Option<Error> {
        match self.look() {
            Some(End::Lost(cause)) => Some(Error::Lost {
                key: self.keys[0].clone(),
                cause: cause.clone(),
            }),
            _ => None,
        }
    }

    fn end(&self, end: End) {
        let lost = match &end {
            End::Lost(cause) => Some(cause.clone()),
            End::Released => None,
        };
        if self.end.set(end).is_err() {
            return;
        }
        self.ended.notify_waiters();
        if let Some(cause) = lost {
            self.report(&cause);
        }
    }

    fn report(&self, cause: &LossCause) {
        let (backend, key, held) = (self.backend, &self.keys[0], self.granted.elapsed());
        match self.visibility {
            KeyVisibility::Always => {
                tracing::warn!(backend, %key, id = %key.id(), ?held, %cause, "lock lost");
            }
            KeyVisibility::DebugOnly => {
                tracing::warn!(backend, id = %key.id(), ?held, %cause, "lock lost");
                tracing::debug!(backend, %key, id = %key.id(), ?held, %cause, "lock lost");
            }
        }
    }
}

/// Tells when a lock is lost, and why.
///
/// It can be cloned, outlives the guard, and never fires once the lock was released. One that is
/// made after the loss fires at once.
///
/// ```
/// # use sqlock_core::{Locks, MemoryBackend};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
/// # let locks = Locks::new(MemoryBackend::new());
/// let guard = locks.acquire("daily-report").await?;
/// let lost = guard.lost();
/// tokio::spawn(async move {
///     let error = lost.await;
///     eprintln!("stop at once: {error}");
/// });
/// guard.check()?; // and without waiting
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a loss signal does nothing unless it is awaited or checked"]
pub struct Lost(Option<Arc<Signal>>);

impl Lost {
    /// Never fires.
    pub const fn never() -> Self {
        Self(None)
    }

    /// Why the lock is lost, or `None` while it is not known to be.
    #[must_use]
    pub fn cause(&self) -> Option<LossCause> {
        match self.0.as_ref()?.look()? {
            End::Lost(cause) => Some(cause.clone()),
            End::Released => None,
        }
    }

    /// `Ok` while the lock is not known to be lost.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] with the cause.
    pub fn check(&self) -> Result<()> {
        match self.0.as_ref().and_then(|signal| signal.error()) {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Resolves to [`Error::Lost`] when the lock is lost, and never where it was released.
    ///
    /// # Cancel safety
    ///
    /// Safe: the signal stays fired.
    pub async fn wait(self) -> Error {
        let Some(signal) = self.0 else {
            return pending().await;
        };
        let mut ended = pin!(signal.ended.notified());
        // before the look, or an end between the two would be missed
        ended.as_mut().enable();
        poll_fn(|context| match signal.look() {
            Some(_) => Poll::Ready(()),
            None => ended.as_mut().poll(context),
        })
        .await;
        match signal.error() {
            Some(error) => error,
            None => pending().await,
        }
    }

    /// Runs `work`, and stops it where the lock is lost first: `work` is dropped at its current
    /// `await`.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] where the lock was lost before `work` was done, in which case `work` may
    /// have been done in part.
    ///
    /// # Cancel safety
    ///
    /// As safe as `work`.
    pub async fn protect<F: IntoFuture>(self, work: F) -> Result<F::Output> {
        tokio::select! {
            biased;
            error = self.wait() => Err(error),
            output = work.into_future() => Ok(output),
        }
    }
}

impl IntoFuture for Lost {
    type Output = Error;
    type IntoFuture = Pin<Box<dyn Future<Output = Error> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}

/// For backends: the sending end of [`Lost`].
///
/// Whoever keeps the lock alive owns it. Dropped without a word it means that the owner is gone.
#[derive(Debug)]
pub struct LostSender(Arc<Signal>);

impl LostSender {
    /// A signal for the lock that answers `request`.
    pub fn new(backend: &'static str, request: &Request) -> (Self, Lost) {
        Self::start(backend, request, None)
    }

    /// A signal that also fires once `expiry` says so. Whoever owns the sender still has to
    /// [`lose`](Self::lose) it then: `expiry` is asked by those who look, and wakes nobody.
    pub fn with_expiry(
        backend: &'static str,
        request: &Request,
        expiry: Arc<dyn Expiry>,
    ) -> (Self, Lost) {
        Self::start(backend, request, Some(expiry))
    }

    fn start(
        backend: &'static str,
        request: &Request,
        expiry: Option<Arc<dyn Expiry>>,
    ) -> (Self, Lost) {
        let signal = Arc::new(Signal {
            backend,
            keys: Arc::clone(request.keys()),
            visibility: request.visibility(),
            expiry,
            granted: Instant::now(),
            end: OnceLock::new(),
            ended: Notify::new(),
        });
        (Self(Arc::clone(&signal)), Lost(Some(signal)))
    }

    /// The lock is lost. Does nothing after a release or an earlier loss.
    pub fn lose(self, cause: LossCause) {
        self.0.end(End::Lost(cause));
    }

    /// The lock was released: the signal will never fire.
    pub fn released(self) {
        self.0.end(End::Released);
    }
}

impl Drop for LostSender {
    fn drop(&mut self) {
        self.0.end(End::Lost(LossCause::OwnerGone));
    }
}
