//! Leases in a table.

use anyhow::Result;
use sqlock::Locks;
use sqlock::ttl::TtlOptions;
use sqlx::postgres::PgConnectOptions;

use crate::contest::{Contest, Pace};
use crate::cycle::by_tasks;
use crate::peers::{raw, redis};
use crate::report::Table;
use crate::servers::{Postgres, Servers};

use super::ours;

const POOL: u32 = 10;

pub(crate) async fn durable(servers: &Servers, pace: Pace, tasks: u64) -> Result<Table> {
    let postgres = &servers.durable;
    run(
        servers,
        pace,
        tasks,
        postgres,
        postgres.direct(),
        "fsync on",
    )
    .await
}

pub(crate) async fn fast(servers: &Servers, pace: Pace, tasks: u64) -> Result<Table> {
    let postgres = &servers.fast;
    run(
        servers,
        pace,
        tasks,
        postgres,
        postgres.direct(),
        "fsync off",
    )
    .await
}

pub(crate) async fn pooled(servers: &Servers, pace: Pace, tasks: u64) -> Result<Table> {
    let postgres = &servers.durable;
    run(
        servers,
        pace,
        tasks,
        postgres,
        postgres.pooled(),
        "fsync on, through PgBouncer",
    )
    .await
}

async fn run(
    servers: &Servers,
    pace: Pace,
    tasks: u64,
    postgres: &Postgres,
    options: PgConnectOptions,
    way: &str,
) -> Result<Table> {
    raw::create_lease_table(&mut postgres.connect().await).await?;
    let backend = TtlOptions::new().connect_with(options.clone())?;
    backend.create_table().await?;
    let locks = Locks::new(backend);
    let theirs = postgres.pool(options, POOL).await?;
    let mut contest = Contest::new(format!("Leases, {way}: {tasks} tasks, a key each"));
    if tasks == 64 && way == "fsync on" {
        contest = contest.target("sqlock, released", 1.0 / 5.0);
    }
    contest
        .entry(
            format!("upsert and update by sqlx, a statement each, pool of {POOL}"),
            "renewal, fencing token, a clock that is read after the row lock",
            by_tasks(tasks, raw::lease(theirs)),
        )
        .entry(
            "sqlock, released",
            "",
            by_tasks(tasks, ours::released(locks.clone())),
        )
        .entry("sqlock, dropped", "", by_tasks(tasks, ours::dropped(locks)))
        .entry(
            "Redis by rslock, appendfsync always",
            redis::LACKS,
            by_tasks(tasks, redis::lease(servers.redis_always.url())),
        )
        .run(pace)
        .await
}
