use std::{
    future::Future,
    ops::ControlFlow,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    AskHolders, Standing, Term,
    seat::{Seat, StepDown},
};
use crate::{FencingToken, Lock, LockBackend, LockGuard, LockKey, Result, chance};

/// One node's standing for election, whose options were looked at.
pub(super) struct Campaign<B: LockBackend> {
    pub(super) lock: Lock<B>,
    pub(super) key: LockKey,
    pub(super) retry: Duration,
    pub(super) step_down: Option<StepDown<B::Held>>,
    pub(super) holders: Option<AskHolders<B>>,
    pub(super) standing: watch::Sender<Standing>,
}

/// How a term ended.
enum End<T> {
    /// The lock is lost, or about to be.
    Over,
    Returned(ControlFlow<T>),
    Stopped,
}

/// The longest that a release is waited for. It goes on after that.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

impl<B: LockBackend> Campaign<B> {
    pub(super) async fn run<T, F>(
        &self,
        stop: impl Future<Output = ()>,
        mut body: impl FnMut(Term) -> F,
    ) -> Result<Option<T>>
    where
        F: Future<Output = ControlFlow<T>>,
    {
        let _stopped = StoppedAtLast(&self.standing);
        let mut stop = pin!(stop);
        loop {
            let guard = tokio::select! {
                biased;
                () = &mut stop => return Ok(None),
                guard = self.win() => guard?,
            };
            match self.serve(guard, stop.as_mut(), &mut body).await {
                End::Stopped => return Ok(None),
                End::Returned(ControlFlow::Break(value)) => return Ok(Some(value)),
                End::Returned(ControlFlow::Continue(())) | End::Over => {}
            }
            self.standing
                .send_replace(Standing::Following { leader: None });
            tokio::select! {
                biased;
                () = &mut stop => return Ok(None),
                () = self.pause() => {}
            }
        }
    }

    /// Waits for the lock, for as long as it takes.
    async fn win(&self) -> Result<LockGuard<B::Held>> {
        loop {
            let mut acquire = pin!(self.lock.clone().acquire());
            self.standing
                .send_replace(Standing::Following { leader: None });
            let answer = loop {
                tokio::select! {
                    biased;
                    answer = &mut acquire => break answer,
                    () = self.look_around() => {}
                }
            };
            match answer {
                Ok(guard) => return Ok(guard),
                Err(error) if error.is_retryable() => {
                    let key = &self.key;
                    tracing::debug!(%key, id = %key.id(), %error, "election cannot be stood for");
                    self.standing
                        .send_replace(Standing::Failing(Arc::new(error)));
                    self.pause().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks who leads, and waits until the next look.
    async fn look_around(&self) {
        if let Some(holders) = self.holders {
            let standing = match holders(&self.lock.backend, &self.key).await {
                Ok(holders) => Standing::Following {
                    leader: holders.into_iter().next(),
                },
                Err(error) => Standing::Failing(Arc::new(error)),
            };
            self.standing.send_replace(standing);
        }
        self.pause().await;
    }

    /// Leads, until the term is over. The lock is released then, and the body is gone before.
    async fn serve<T, F>(
        &self,
        guard: LockGuard<B::Held>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
        body: &mut impl FnMut(Term) -> F,
    ) -> End<T>
    where
        F: Future<Output = ControlFlow<T>>,
    {
        let token = guard.token();
        // vacated when this is dropped, which is after the body is
        let sitting = Sitting(Arc::new(Seat::of(guard, self.step_down)));
        let term = Term {
            key: self.key.clone(),
            token,
            seat: Arc::clone(&sitting.0) as Arc<_>,
        };
        self.standing.send_replace(Standing::Leading(term.clone()));
        let key = &self.key;
        tracing::debug!(%key, id = %key.id(), token = term.token.map(FencingToken::get), "term begun");
        let end = {
            let mut over = pin!(sitting.0.over());
            // not even made where the term is over already
            let mut serving = pin!(async { body(term).await });
            tokio::select! {
                biased;
                error = &mut over => {
                    tracing::debug!(%key, id = %key.id(), %error, "term over");
                    End::Over
                }
                returned = &mut serving => End::Returned(returned),
                () = &mut stop => End::Stopped,
            }
        };
        if let Some(guard) = sitting.0.vacate() {
            match timeout(RELEASE_LIMIT, guard.release()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%key, id = %key.id(), %error, "release failed"),
                Err(_) => tracing::debug!(%key, id = %key.id(), "release takes long"),
            }
        }
        end
    }

    async fn pause(&self) {
        sleep(chance::up_to(self.retry)).await;
    }
}

/// Ends a term however its election ends: what looks at it from elsewhere does not keep it.
struct Sitting<H: crate::Held>(Arc<Seat<H>>);

impl<H: crate::Held> Drop for Sitting<H> {
    fn drop(&mut self) {
        drop(self.0.vacate());
    }
}

struct StoppedAtLast<'a>(&'a watch::Sender<Standing>);

impl Drop for StoppedAtLast<'_> {
    fn drop(&mut self) {
        self.0.send_replace(Standing::Stopped);
    }
}
