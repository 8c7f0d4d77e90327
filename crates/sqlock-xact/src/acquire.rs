//! Taking a lock: in a task of its own, which is never cancelled.
//!
//! A `begin` that is cancelled midway would leave a pooled connection within a transaction. So the
//! caller only waits for the answer, and an answer that nobody takes rolls itself back.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use rand::Rng;
use sqlock_core::{Error, FencingToken, LockGuard, Request, Result};
use sqlock_postgres::{TokenKind, shielded};
use sqlx::{Postgres, Transaction};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use crate::{
    BACKEND, XactHeld,
    progress::{Progress, State},
    source::{Failed, Permit, Source, Tried},
    statement::Sentinel,
    tokens::Tokens,
};

pub(crate) type Granted = Option<LockGuard<XactHeld>>;

const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// For how long those who wait outlast connections that break. Those who only try are told at once.
const OUTAGE: Duration = Duration::from_secs(30);

/// One acquire under way.
#[derive(Debug)]
pub(crate) struct Acquire {
    pub(crate) source: Arc<Source>,
    pub(crate) request: Request,
    pub(crate) poll: Duration,
    pub(crate) progress: Arc<Progress>,
    pub(crate) answer: oneshot::Sender<Result<Granted>>,
}

impl Acquire {
    /// Tries until the lock is had, the deadline has passed or the caller has gone away.
    pub(crate) async fn run(mut self) {
        let mut pause = FIRST_PAUSE.min(self.poll);
        let mut failing_since = None;
        let answer = loop {
            let (source, request) = (&self.source, &self.request);
            // waiting for a connection may be cancelled; from there on nothing is
            let permit = tokio::select! {
                () = self.answer.closed() => return,
                permit = source.permit(request.deadline()) => permit,
            };
            let tried = match permit {
                Ok(permit) => source.try_once(request, permit, &self.progress).await,
                Err(error) => Err(Failed::Finally(error)),
            };
            if let ControlFlow::Break(answer) = self.judge(tried, &mut failing_since) {
                break answer;
            }
            let until_next = self.until_next(pause);
            tokio::select! {
                () = self.answer.closed() => return,
                () = sleep(until_next) => {}
            }
            pause = (pause * 2).min(self.poll);
        };
        // a caller who has gone away drops the guard, and with it the transaction
        self.answer.send(answer).ok();
    }

    fn judge(
        &self,
        tried: Result<Granted, Failed>,
        failing_since: &mut Option<Instant>,
    ) -> ControlFlow<Result<Granted>> {
        let deadline = self.request.deadline();
        let waits = deadline.is_some_and(|deadline| !deadline.has_passed());
        match tried {
            Ok(None) if waits => {
                *failing_since = None;
                self.progress.set(State::Asked);
                ControlFlow::Continue(())
            }
            Err(Failed::ForNow(error)) if waits => {
                let since = failing_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= OUTAGE {
                    return ControlFlow::Break(Err(error));
                }
                tracing::debug!(backend = BACKEND, %error, "an attempt failed, and is repeated");
                self.progress.set(State::Failed(error));
                ControlFlow::Continue(())
            }
            Ok(granted) => ControlFlow::Break(Ok(granted)),
            Err(failed) => ControlFlow::Break(Err(failed.into())),
        }
    }

    /// Jittered, or waiters that met once would meet at every look; and not past the deadline.
    fn until_next(&self, pause: Duration) -> Duration {
        let jittered = pause.mul_f64(rand::rng().random_range(0.5..1.0));
        let left = self.request.deadline().and_then(|d| d.remaining());
        left.map_or(jittered, |left| left.min(jittered))
    }
}

/// A transaction that has the lock.
pub(crate) struct Taken {
    pub(crate) transaction: Transaction<'static, Postgres>,
    pub(crate) token: Option<FencingToken>,
}

async fn refused(
    transaction: Transaction<'static, Postgres>,
    tried: Tried,
) -> Result<Option<Taken>, Failed> {
    if tried == Tried::Standby {
        return Err(Failed::Finally(Error::Standby));
    }
    // confirmed, so that a pooler has its connection back while we wait
    let rolled_back = shielded(transaction.rollback()).await.flatten();
    rolled_back.map_err(Failed::of)?;
    Ok(None)
}

impl Source {
    /// One transaction, which is given back where the lock is refused.
    async fn try_once(
        &self,
        request: &Request,
        permit: Permit,
        progress: &Progress,
    ) -> Result<Granted, Failed> {
        if self.register.is_shut_down() {
            return Err(Failed::Finally(Error::ShutDown { backend: BACKEND }));
        }
        let sentinel = Sentinel::random();
        let taken = match &self.tokens {
            None => self.take(request, &sentinel, progress).await?,
            Some(tokens) => {
                let taken = self.take_fenced(request, &sentinel, progress, tokens);
                taken.await?
            }
        };
        let Some(taken) = taken else {
            return Ok(None);
        };
        let held = XactHeld::new(taken, sentinel, request, &self.register, permit);
        let held = held.ok_or(Failed::Finally(Error::ShutDown { backend: BACKEND }))?;
        Ok(Some(LockGuard::arm(held)))
    }

    async fn take(
        &self,
        request: &Request,
        sentinel: &Sentinel,
        progress: &Progress,
    ) -> Result<Option<Taken>, Failed> {
        let mut transaction = self.begin().await?;
        progress.set(State::Asked);
        let sql = sentinel.try_all(request.keys(), request.mode());
        let tried = self.tried(&mut transaction, sql).await;
        match tried.map_err(Failed::of)? {
            Tried::Taken(token) => Ok(Some(Taken { transaction, token })),
            other => refused(transaction, other).await,
        }
    }

    async fn take_fenced(
        &self,
        request: &Request,
        sentinel: &Sentinel,
        progress: &Progress,
        tokens: &Tokens,
    ) -> Result<Option<Taken>, Failed> {
        let source = tokens.source(&self.pool).await?;
        let (keys, mode) = (request.keys(), request.mode());
        if source.kind() == TokenKind::Row {
            let taken = self.take(request, sentinel, progress).await?;
            let Some(Taken { transaction, .. }) = taken else {
                return Ok(None);
            };
            let token = Some(tokens.draw_from_row(&source, &self.pool).await?);
            return Ok(Some(Taken { transaction, token }));
        }
        for _ in 0..2 {
            let mut transaction = self.begin().await?;
            progress.set(State::Asked);
            let sql = sentinel.try_all_with_token(keys, mode, &source);
            let tried = self.tried(&mut transaction, sql).await;
            match tried.map_err(|error| tokens.failed(&source, error))? {
                // the base is gone since we looked, or used up
                Tried::Taken(None) => {
                    transaction.rollback().await.map_err(Failed::of)?;
                    tokens.raise(&source, &self.pool).await?;
                }
                Tried::Taken(token) => return Ok(Some(Taken { transaction, token })),
                other => return refused(transaction, other).await,
            }
        }
        Err(tokens.nothing_drawn(&source))
    }
}
