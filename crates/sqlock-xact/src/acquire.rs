//! Taking a lock: in a task of its own, which is never cancelled.
//!
//! A `begin` that is cancelled midway would leave a pooled connection within a transaction. So the
//! caller only waits for the answer, and an answer that nobody takes rolls itself back.

use std::time::Duration;

use rand::Rng;
use sqlock_core::{Error, LockGuard, Request, Result};
use sqlx::{AssertSqlSafe, PgPool, Row};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use crate::{
    BACKEND, XactHeld,
    outcome::of_acquire,
    register::Register,
    statement::{BEGIN, Sentinel},
};

pub(crate) type Answer = oneshot::Sender<Result<Option<LockGuard<XactHeld>>>>;

const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Tries until the lock is had, the deadline has passed or the caller has gone away.
pub(crate) async fn acquire(
    pool: PgPool,
    register: Register,
    request: Request,
    poll: Duration,
    mut answer: Answer,
) {
    let mut pause = FIRST_PAUSE.min(poll);
    loop {
        let tried = try_once(&pool, &register, &request).await;
        let waits = request
            .deadline()
            .is_some_and(|deadline| !deadline.has_passed());
        if !waits || !matches!(tried, Ok(None)) {
            // a caller who has gone away drops the guard, and with it the transaction
            answer.send(tried).ok();
            return;
        }
        // jittered, or waiters that met once would meet at every look
        let jittered = pause.mul_f64(rand::rng().random_range(0.5..1.0));
        let until = Instant::now() + jittered;
        let left = request.deadline().and_then(|deadline| deadline.instant());
        let until = left.map_or(until, |deadline| deadline.min(until));
        tokio::select! {
            () = answer.closed() => return,
            () = sleep(until.saturating_duration_since(Instant::now())) => {}
        }
        pause = (pause * 2).min(poll);
    }
}

/// One transaction, which is given back where the lock is refused.
async fn try_once(
    pool: &PgPool,
    register: &Register,
    request: &Request,
) -> Result<Option<LockGuard<XactHeld>>> {
    if register.is_shut_down() {
        return Err(Error::ShutDown { backend: BACKEND });
    }
    let begun = pool.begin_with(BEGIN).await;
    let mut transaction = begun.map_err(|error| of_acquire(error, "begin"))?;
    let sentinel = Sentinel::random();
    let sql = sentinel.try_all(request.keys(), request.mode());
    let failed = |error| of_acquire(error, "acquire");
    let rows = sqlx::raw_sql(AssertSqlSafe(sql))
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed)?;
    let mut all = rows.len() == request.keys().len() + 1;
    for row in &rows {
        // NULL is no: only true means that a lock was had
        all &= row
            .try_get::<Option<bool>, _>(0)
            .map_err(failed)?
            .unwrap_or(false);
    }
    if all {
        let held = XactHeld::new(transaction, sentinel, request, register);
        let held = held.ok_or(Error::ShutDown { backend: BACKEND })?;
        return Ok(Some(LockGuard::arm(held)));
    }
    transaction.rollback().await.map_err(failed)?;
    Ok(None)
}
