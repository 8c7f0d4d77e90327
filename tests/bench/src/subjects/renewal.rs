//! What keeping many leases costs.

use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt as _;
use futures_util::stream;
use sqlock::Locks;
use sqlock::ttl::{LeaseOptions, TtlOptions};
use tokio::time::sleep;

use crate::contest::Pace;
use crate::measure::{reset, work};
use crate::report::{Row, Table};
use crate::servers::Servers;

/// Renewed at a third.
const TTL: Duration = Duration::from_secs(6);

pub(crate) async fn run(servers: &Servers, pace: Pace, leases: usize) -> Result<Table> {
    let postgres = &servers.durable;
    let options = TtlOptions::new().leases(LeaseOptions::new().ttl(TTL));
    let backend = options.connect_with(postgres.direct())?;
    backend.create_table().await?;
    let locks = Locks::new(backend);
    let guards: Vec<_> = stream::iter(0..leases)
        .map(|index| locks.acquire(format!("renewal/{index}")))
        .buffer_unordered(256)
        .collect()
        .await;
    let guards: Vec<_> = guards.into_iter().collect::<Result<_, _>>()?;

    let mut admin = postgres.connect().await;
    let ticks = if pace.rounds > 5 { 6 } else { 3 };
    sleep(TTL / 3).await;
    reset(&mut admin).await?;
    sleep(TTL / 3 * ticks).await;
    let done = work(&mut admin, "").await?;
    let ticks = f64::from(ticks);
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    drop(guards);
    locks.shutdown().await?;

    let most = if leases > 1000 { 10.0 } else { 1.0 };
    let rows = vec![
        Row::of_count(
            "statements that renew a tick",
            renewals(&done) / ticks,
            Some(most),
        ),
        Row::of_count(
            "server's milliseconds a tick",
            done.milliseconds / ticks,
            Some(150.0),
        ),
        Row::of_count("the longest statement, milliseconds", done.longest, None),
        Row::of_count("leases lost", lost as f64, Some(0.0)),
    ];
    Ok(Table::of_counts(
        format!("Leases: renewal of {leases}, fsync on"),
        "count",
        rows,
    ))
}

/// The settings of a transaction are statements of their own to the server's statistics.
fn renewals(work: &crate::measure::Work) -> f64 {
    work.statements as f64 / 3.0
}
