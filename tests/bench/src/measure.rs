//! What is counted rather than timed: statements, connections, processor time.

use std::time::Duration;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use sqlx::postgres::PgConnection;

/// Nanoseconds of the clock that all processes of this machine share.
pub(crate) fn monotonic_nanos() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The processor time that this process has used.
pub(crate) fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// What the server did since [`reset`], but for the asking.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub(crate) struct Work {
    pub(crate) statements: i64,
    pub(crate) milliseconds: f64,
    pub(crate) longest: f64,
}

pub(crate) async fn reset(connection: &mut PgConnection) -> Result<()> {
    sqlx::query("select pg_stat_statements_reset()")
        .execute(connection)
        .await?;
    Ok(())
}

/// Statements whose text contains `part`; all of them where it is empty.
pub(crate) async fn work(connection: &mut PgConnection, part: &str) -> Result<Work> {
    Ok(sqlx::query_as(
        "select coalesce(sum(calls), 0)::bigint as statements, \
                coalesce(sum(total_exec_time), 0) as milliseconds, \
                coalesce(max(max_exec_time), 0) as longest \
         from pg_stat_statements \
         where query not like '%pg_stat_%' and strpos(query, $1) > 0",
    )
    .bind(part)
    .fetch_one(connection)
    .await?)
}

/// How many connections the server has, but for this one.
pub(crate) async fn connections(connection: &mut PgConnection) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "select count(*) from pg_stat_activity \
         where backend_type = 'client backend' and pid <> pg_backend_pid()",
    )
    .fetch_one(connection)
    .await?)
}
