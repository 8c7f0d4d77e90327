//! What a lock that is held, and a task that waits, take of the client's heap.

use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::memory::in_use;
use crate::report::{Row, Table};
use crate::servers::Servers;

use super::ours;

const LOCKS: i64 = 10_000;
const WAITERS: i64 = 1000;

pub(crate) async fn run(servers: &Servers) -> Result<Table> {
    let locks = ours::session(&servers.fast).await?;
    let before = in_use()?;
    let mut guards = Vec::new();
    for key in 0..LOCKS {
        guards.push(locks.acquire(key + 5_000_000).await?);
    }
    let held = (in_use()? - before) as f64 / LOCKS as f64;
    drop(guards);

    let holder = ours::session(&servers.fast).await?;
    let busy = holder.acquire("busy").await?;
    sleep(Duration::from_secs(1)).await;
    let before = in_use()?;
    let mut waiting = JoinSet::new();
    for _ in 0..WAITERS {
        let locks = locks.clone();
        waiting.spawn(async move { locks.acquire("busy").await.map(drop) });
    }
    sleep(Duration::from_secs(1)).await;
    let waiter = (in_use()? - before) as f64 / WAITERS as f64;
    drop(busy);
    while let Some(ended) = waiting.join_next().await {
        ended??;
    }
    let rows = vec![
        Row::of_count("a held lock, of 10,000", held, Some(1024.0)),
        Row::of_count(
            "a waiting task, its own task included",
            waiter,
            Some(2048.0),
        ),
    ];
    Ok(Table::of_counts(
        "Session locks: memory of the client",
        "bytes",
        rows,
    ))
}
