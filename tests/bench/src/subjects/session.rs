//! One task, one free lock after the other.

use anyhow::Result;

use crate::contest::{Contest, Pace};
use crate::cycle::by_tasks;
use crate::peers::{distributed_lock, raw, redis, sqlx_lock};
use crate::report::Table;
use crate::servers::Servers;

use super::ours;

pub(crate) async fn run(servers: &Servers, pace: Pace) -> Result<Table> {
    let postgres = &servers.fast;
    let locks = ours::session(postgres).await?;
    let pool = postgres.pool(postgres.direct(), 1).await?;
    Contest::new("Session locks: one task, a free lock")
        .target("sqlock, released", 1.15)
        .target("sqlock, dropped", 0.65)
        .entry(
            "two prepared statements by sqlx",
            "all but the lock",
            by_tasks(1, raw::session(postgres.connect().await)),
        )
        .entry(
            "sqlock, released",
            "",
            by_tasks(1, ours::released(locks.clone())),
        )
        .entry("sqlock, dropped", "", by_tasks(1, ours::dropped(locks)))
        .entry(
            "sqlx `PgAdvisoryLock`, pool of 1",
            sqlx_lock::LACKS,
            by_tasks(1, sqlx_lock::session(pool)),
        )
        .entry(
            "distributed-lock-postgres",
            distributed_lock::LACKS,
            by_tasks(1, distributed_lock::session(postgres.url()).await?),
        )
        .entry(
            "Redis by rslock, nothing on disk",
            redis::LACKS,
            by_tasks(1, redis::lease(servers.redis.url())),
        )
        .entry(
            "Redis by rslock, appendfsync always",
            redis::LACKS,
            by_tasks(1, redis::lease(servers.redis_always.url())),
        )
        .run(pace)
        .await
}
