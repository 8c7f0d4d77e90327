//! How fast a released lock reaches the next that waits for it.

use anyhow::Result;
use rand::seq::SliceRandom as _;

use crate::clients::Kind;
use crate::contest::Pace;
use crate::hand_off::measure;
use crate::peers::redis;
use crate::report::{Row, Table};
use crate::servers::Servers;

pub(crate) async fn run(servers: &Servers, pace: Pace, waiters: usize) -> Result<Table> {
    let mut contestants = [
        (
            "blocked `pg_advisory_lock`",
            Kind::Blocked,
            servers.fast.url(),
            BLOCKED,
            vec![],
        ),
        ("sqlock", Kind::Session, servers.fast.url(), "", vec![]),
        (
            "Redis by rslock",
            Kind::Redis,
            servers.redis.url(),
            redis::LACKS,
            vec![],
        ),
    ];
    let turn = u64::try_from(pace.turn.as_millis())? * 3;
    let mut order = [0, 1, 2];
    for _ in 0..pace.rounds.div_ceil(2) {
        order.shuffle(&mut rand::rng());
        for index in order {
            let (_, kind, url, _, samples) = &mut contestants[index];
            samples.extend(measure(*kind, url, waiters + 1, turn).await?);
        }
    }
    let rows = contestants
        .into_iter()
        .map(|(name, _, _, lacks, samples)| {
            let mut row = Row::of_latencies(name.to_owned(), lacks, samples);
            row.target = (waiters == 1 && name == "sqlock").then_some(2.5);
            row
        })
        .collect();
    let title = format!("Session locks: hand-off to another process, {waiters} waiting");
    Ok(Table::of_times(title, rows))
}

const BLOCKED: &str = "a connection and a snapshot for each waiter; deadlocks with index builds; \
                       its waiters outlive their clients";
