//! What waiting costs while nothing happens.

use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::contest::Pace;
use crate::measure::{connections, cpu_time, reset, work};
use crate::report::{Row, Table};
use crate::servers::Servers;

use super::ours;

const TASKS: usize = 1000;

pub(crate) async fn run(servers: &Servers, pace: Pace) -> Result<Table> {
    let postgres = &servers.fast;
    let mut admin = postgres.connect().await;
    let holder = ours::session(postgres).await?;
    let held = holder.acquire("busy").await?;
    let before = connections(&mut admin).await?;
    let locks = ours::session(postgres).await?;
    let mut waiting = JoinSet::new();
    for _ in 0..TASKS {
        let locks = locks.clone();
        waiting.spawn(async move { locks.acquire("busy").await.map(drop) });
    }
    sleep(Duration::from_secs(1)).await;
    let taken = connections(&mut admin).await? - before;

    let span = pace.turn * 40;
    reset(&mut admin).await?;
    let start = cpu_time();
    sleep(span).await;
    let seconds = span.as_secs_f64();
    let spent = (cpu_time() - start).as_secs_f64();
    let done = work(&mut admin, "").await?;
    drop(held);
    while let Some(ended) = waiting.join_next().await {
        ended??;
    }
    let rows = vec![
        Row::of_count("connections", taken as f64, Some(1.0)),
        Row::of_count(
            "statements a second",
            done.statements as f64 / seconds,
            None,
        ),
        Row::of_count(
            "server's milliseconds in them a minute",
            done.milliseconds / seconds * 60.0,
            None,
        ),
        Row::of_count(
            "client's processor seconds a minute",
            spent / seconds * 60.0,
            None,
        ),
    ];
    Ok(Table::of_counts(
        format!("Session locks: {TASKS} tasks of one process wait for one key that another holds"),
        "count",
        rows,
    )
    .note("The statements of the process that holds are among them: it keeps its session alive."))
}
