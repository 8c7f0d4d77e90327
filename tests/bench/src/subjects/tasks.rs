//! Many tasks of one process, each with a key of its own.

use anyhow::Result;

use crate::contest::{Contest, Pace};
use crate::cycle::by_tasks;
use crate::peers::{distributed_lock, raw, redis, sqlx_lock};
use crate::report::Table;
use crate::servers::Servers;

use super::ours;

pub(crate) async fn run(servers: &Servers, pace: Pace, tasks: u64) -> Result<Table> {
    let postgres = &servers.fast;
    let locks = ours::session(postgres).await?;
    let pool = postgres.pool(postgres.direct(), 10).await?;
    let mut contest = Contest::new(format!("Session locks: {tasks} tasks, a key each"));
    if tasks == 1000 {
        // 0.7 times the throughput
        contest = contest.target("sqlock, released", 1.0 / 0.7);
    }
    contest
        .entry(
            "batches of 128 keys by sqlx, one connection",
            "all but the locks",
            raw::batches(postgres.connect().await),
        )
        .entry(
            "sqlock, released",
            "",
            by_tasks(tasks, ours::released(locks.clone())),
        )
        .entry("sqlock, dropped", "", by_tasks(tasks, ours::dropped(locks)))
        .entry(
            "sqlx `PgAdvisoryLock`, pool of 10",
            sqlx_lock::LACKS,
            by_tasks(tasks, sqlx_lock::session(pool)),
        )
        .entry(
            "distributed-lock-postgres, its pool",
            distributed_lock::LACKS,
            by_tasks(tasks, distributed_lock::session(postgres.url()).await?),
        )
        .entry(
            "Redis by rslock, nothing on disk",
            redis::LACKS,
            by_tasks(tasks, redis::lease(servers.redis.url())),
        )
        .run(pace)
        .await
}
