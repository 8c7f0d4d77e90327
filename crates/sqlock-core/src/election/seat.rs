use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::time::sleep;

use crate::{Error, Held, LockGuard, LockKey, LossCause, Lost, Result};

/// How a leader steps down before its lease runs out.
pub(super) struct StepDown<H> {
    pub(super) before: Duration,
    pub(super) remaining: fn(&H) -> Duration,
}

impl<H> Clone for StepDown<H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for StepDown<H> {}

/// The lock of a term that is served. Whoever has a [`Term`](super::Term) can look at it, and none
/// of them keeps it.
pub(super) struct Seat<H: Held> {
    guard: Mutex<Option<LockGuard<H>>>,
    lost: Lost,
    key: LockKey,
    step_down: Option<StepDown<H>>,
    /// A term that is over stays over, even if its lease is prolonged after all.
    over: AtomicBool,
}

/// What a term knows of its seat.
pub(super) trait Look: Send + Sync {
    fn check(&self) -> Result<()>;
}

impl<H: Held> Seat<H> {
    pub(super) fn of(guard: LockGuard<H>, step_down: Option<StepDown<H>>) -> Self {
        Self {
            lost: guard.lost(),
            key: guard.key().clone(),
            guard: Mutex::new(Some(guard)),
            step_down,
            over: AtomicBool::new(false),
        }
    }

    /// Resolves when the term is over. It looks whenever it is polled, so that a process that was
    /// paused learns of it before it does anything else.
    ///
    /// # Cancel safety
    ///
    /// Safe: a term that is over stays over.
    pub(super) async fn over(&self) -> Error {
        let mut waiting = pin!(async {
            let lost = self.lost.clone().wait();
            let mut lost = pin!(lost);
            loop {
                match self.time_left() {
                    None => return drop(lost.await),
                    Some(Duration::ZERO) => return,
                    Some(left) => tokio::select! {
                        _ = &mut lost => return,
                        () = sleep(left) => {}
                    },
                }
            }
        });
        poll_fn(|context| match self.check() {
            Err(error) => Poll::Ready(error),
            // the wait is over, and so the next look will tell
            Ok(()) => match waiting.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(self.check().err().unwrap_or_else(|| self.end())),
                Poll::Pending => Poll::Pending,
            },
        })
        .await
    }

    /// From here on the term is over for all who look, and the lock is there to be released.
    pub(super) fn vacate(&self) -> Option<LockGuard<H>> {
        self.over.store(true, Ordering::SeqCst);
        self.guard().take()
    }

    /// Until the leader has to step down; `None` where its lock does not run out.
    fn time_left(&self) -> Option<Duration> {
        let step_down = self.step_down.as_ref()?;
        let guard = self.guard();
        let remaining = guard
            .as_ref()
            .map(|guard| (step_down.remaining)(guard.held()));
        Some(
            remaining
                .unwrap_or_default()
                .saturating_sub(step_down.before),
        )
    }

    fn end(&self) -> Error {
        self.over.store(true, Ordering::SeqCst);
        Error::Lost {
            key: self.key.clone(),
            cause: LossCause::SteppedDown,
        }
    }

    fn guard(&self) -> MutexGuard<'_, Option<LockGuard<H>>> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Held> Look for Seat<H> {
    fn check(&self) -> Result<()> {
        if let Err(error) = self.lost.check() {
            self.over.store(true, Ordering::SeqCst);
            return Err(error);
        }
        if self.over.load(Ordering::SeqCst) || self.time_left() == Some(Duration::ZERO) {
            return Err(self.end());
        }
        Ok(())
    }
}
