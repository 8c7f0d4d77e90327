use std::{sync::Arc, time::Duration};

use anyhow::Result;
use rand::Rng as _;
use sqlock::{
    Error, LockBackend, LockGuard, Locks, SessionBackend, TtlBackend, XactBackend,
    session::SessionOptions,
    ttl::{LeaseOptions, TtlOptions},
    xact::{XactHeld, XactOptions},
};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use tokio::time::timeout;

use super::{
    Event, Flaw, HEARTBEAT, KEYS, TTL, clock,
    worker::{Workplace, once_in, some},
};

/// For how long a task waits for a lock.
const BUDGET: Duration = Duration::from_secs(2);
const SHUTDOWN: Duration = Duration::from_secs(10);

pub(super) async fn with_session(at: &Arc<Workplace>, options: PgConnectOptions) -> Result<()> {
    let session = SessionOptions::new()
        .heartbeat(HEARTBEAT, HEARTBEAT)
        .connect_timeout(Duration::from_secs(2));
    // The server may be down at this very moment.
    let backend = loop {
        match session.clone().connect_with(options.clone()).await {
            Ok(backend) => break backend,
            Err(_) if !at.is_over() => at.rest(some(50..150)).await,
            Err(error) => return Err(error.into()),
        }
    };
    let locks = Locks::new(backend);
    contend::<SessionBackend>(at, &locks).await
}

pub(super) async fn with_ttl(at: &Arc<Workplace>, options: PgConnectOptions) -> Result<()> {
    let leases = LeaseOptions::new().ttl(TTL);
    let backend = TtlOptions::new().leases(leases).connect_with(options)?;
    contend::<TtlBackend>(at, &Locks::new(backend)).await
}

pub(super) async fn with_xact(at: &Arc<Workplace>, options: PgConnectOptions) -> Result<()> {
    let pool = PgPoolOptions::new()
        .max_connections(4)
        .acquire_timeout(BUDGET)
        .connect_lazy_with(options);
    let locks = Locks::new(XactOptions::new().with_pool(pool.clone()));
    at.staff(|at| {
        let (locks, pool) = (locks.clone(), pool.clone());
        async move {
            while !at.is_over() {
                transact(&at, &locks, &pool).await;
            }
        }
    })
    .await?;
    timeout(SHUTDOWN, locks.shutdown()).await??;
    timeout(SHUTDOWN, pool.close()).await?;
    Ok(())
}

async fn contend<B: LockBackend>(at: &Arc<Workplace>, locks: &Locks<B>) -> Result<()> {
    at.staff(|at| {
        let locks = locks.clone();
        async move {
            while !at.is_over() {
                let key = rand::rng().random_range(0..KEYS);
                if let Some((guard, asked)) = acquire(&at, &locks, key).await {
                    hold(&at, guard, key, asked).await;
                }
            }
        }
    })
    .await?;
    // Whatever the server is up to, it has an end.
    timeout(SHUTDOWN, locks.shutdown()).await?.ok();
    Ok(())
}

async fn acquire<B: LockBackend>(
    at: &Workplace,
    locks: &Locks<B>,
    key: i64,
) -> Option<(LockGuard<B::Held>, i64)> {
    let asked = clock::now();
    let locked = if at.flaw(Flaw::NeverAsks) {
        rand::rng().random()
    } else {
        key
    };
    let acquire = locks.acquire_within(locked, BUDGET);
    let result = if once_in(6) {
        // Callers that go away in the middle.
        timeout(some(0..6), acquire).await.ok()?
    } else {
        acquire.await
    };
    match result {
        Ok(guard) => Some((guard, asked)),
        Err(Error::Timeout { .. }) => None,
        Err(error) => {
            let error = error.to_string();
            at.journal.write(Event::Failed { key, error });
            at.rest(some(20..60)).await;
            None
        }
    }
}

async fn hold<H: sqlock::Held>(at: &Workplace, guard: LockGuard<H>, key: i64, asked: i64) {
    let grant = at.new_grant();
    let token = guard.token().map(sqlock::FencingToken::get);
    at.journal.write(Event::Granted {
        grant,
        key,
        token,
        asked,
    });
    // Longer than a lease, now and then.
    let steps = match once_in(12) || at.flaw(Flaw::DeafToLoss) {
        true => 400,
        false => 4,
    };
    let mut step = 0;
    while (step < steps || at.flaw(Flaw::NeverReleases)) && !at.is_over() {
        step += 1;
        let before = clock::now();
        if let Err(error) = guard.check()
            && !at.flaw(Flaw::DeafToLoss)
        {
            lost(at, grant, &error);
            return;
        }
        at.journal.write_at(before, Event::Believed { grant });
        if step == 1 && write(at, key, token).await.is_err() {
            return;
        }
        at.rest(some(1..10)).await;
    }
    if at.flaw(Flaw::Leaks) && once_in(8) {
        std::mem::forget(guard);
        return;
    }
    at.journal.write(Event::Ending { grant });
    if once_in(3) {
        drop(guard);
        return;
    }
    match guard.release().await {
        Ok(()) => at.journal.write(Event::Released { grant }),
        Err(_) if at.flaw(Flaw::DeafToLoss) => at.journal.write(Event::Released { grant }),
        Err(error) => lost(at, grant, &error),
    }
}

fn lost(at: &Workplace, grant: u32, error: &Error) {
    let cause = error.to_string();
    at.journal.write(Event::Lost { grant, cause });
}

/// The resource takes no token below the last, and writes down what it took.
async fn write(at: &Workplace, key: i64, token: Option<i64>) -> sqlx::Result<()> {
    sqlx::query(
        "with seen as (\
            update resource set last_token = coalesce($2, last_token) \
            where key = $1 and last_token <= coalesce($2, last_token) returning key) \
         insert into writes (key, token) select key, $2 from seen",
    )
    .bind(key)
    .bind(token)
    .execute(&at.resource)
    .await?;
    Ok(())
}

/// Counts up in the lock's own transaction.
async fn transact(at: &Workplace, locks: &Locks<XactBackend>, pool: &PgPool) {
    let key = rand::rng().random_range(0..KEYS);
    let before = match read(at, pool, key).await {
        Ok(before) => before,
        Err(_) => return at.rest(some(20..60)).await,
    };
    let Some((mut guard, asked)) = acquire(at, locks, key).await else {
        return;
    };
    let grant = at.new_grant();
    at.journal.write(Event::Granted {
        grant,
        key,
        token: None,
        asked,
    });
    let count = match count_up(at, &mut guard, key, before).await {
        Ok(count) => count,
        Err(error) => {
            let cause = error.to_string();
            return at.journal.write(Event::Lost { grant, cause });
        }
    };
    if at.flaw(Flaw::NeverReleases) {
        at.rest(Duration::from_secs(60)).await;
    }
    if at.flaw(Flaw::Leaks) && once_in(8) {
        std::mem::forget(guard);
        return;
    }
    if once_in(8) {
        return drop(guard);
    }
    at.journal.write(Event::Ending { grant });
    match guard.commit().await {
        Ok(()) => at.journal.write(Event::Committed { grant, count }),
        Err(_) if at.flaw(Flaw::TrustsCommits) => {
            at.journal.write(Event::Committed { grant, count });
        }
        Err(Error::CommitUnknown { .. }) => at.journal.write(Event::CommitUnknown { grant }),
        Err(error) => lost(at, grant, &error),
    }
}

/// What the flawed read before they have the lock; the others do not look at it.
async fn read(at: &Workplace, pool: &PgPool, key: i64) -> sqlx::Result<Option<i64>> {
    if !at.flaw(Flaw::WorksOutside) {
        return Ok(None);
    }
    let query = sqlx::query_scalar("select count from counter where key = $1").persistent(false);
    query.bind(key).fetch_one(pool).await.map(Some)
}

async fn count_up(
    at: &Workplace,
    guard: &mut LockGuard<XactHeld>,
    key: i64,
    before: Option<i64>,
) -> sqlx::Result<i64> {
    let count: i64 = match before {
        Some(before) => before,
        None => {
            sqlx::query_scalar("select count from counter where key = $1")
                .bind(key)
                .persistent(false)
                .fetch_one(guard.connection())
                .await?
        }
    };
    at.rest(some(0..if once_in(12) { 800 } else { 8 })).await;
    sqlx::query("update counter set count = $2 where key = $1")
        .bind(key)
        .bind(count + 1)
        .persistent(false)
        .execute(guard.connection())
        .await?;
    let is_long = once_in(12) || at.flaw(Flaw::TrustsCommits);
    at.rest(some(0..if is_long { 800 } else { 4 })).await;
    Ok(count + 1)
}
