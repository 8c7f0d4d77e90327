//! Locks that are transactions.

use anyhow::{Context as _, Result};
use sqlock::{Locks, XactBackend};
use sqlx::postgres::{PgConnectOptions, PgPool};

use crate::contest::{Contest, Pace};
use crate::cycle::{Cycle, by_tasks, cycle};
use crate::peers::raw;
use crate::report::Table;
use crate::servers::Servers;

const POOL: u32 = 10;

pub(crate) async fn direct(servers: &Servers, pace: Pace, tasks: u64) -> Result<Table> {
    run(servers, pace, tasks, servers.fast.direct(), "direct").await
}

pub(crate) async fn pooled(servers: &Servers, pace: Pace, tasks: u64) -> Result<Table> {
    run(
        servers,
        pace,
        tasks,
        servers.fast.pooled(),
        "through PgBouncer",
    )
    .await
}

async fn run(
    servers: &Servers,
    pace: Pace,
    tasks: u64,
    options: PgConnectOptions,
    way: &str,
) -> Result<Table> {
    let ours = servers.fast.pool(options.clone(), POOL).await?;
    let theirs = servers.fast.pool(options, POOL).await?;
    Contest::new(format!(
        "Transaction locks, {way}: {tasks} tasks, a key each, pool of {POOL}"
    ))
    .target("sqlock, committed", 1.1)
    .entry(
        "begin, try, commit by sqlx",
        "a look whether the commit was one; cancel safety",
        by_tasks(tasks, raw::transaction(theirs)),
    )
    .entry("sqlock, committed", "", by_tasks(tasks, committed(ours)))
    .run(pace)
    .await
}

fn committed(pool: PgPool) -> Cycle {
    let locks = Locks::new(XactBackend::new(pool));
    cycle(move |key| {
        let locks = locks.clone();
        async move {
            let guard = locks.try_acquire(key).await?;
            let guard = guard.context("the lock is somebody else's")?;
            guard.commit().await?;
            Ok(())
        }
    })
}
