//! Locks that come and go beside others that stay.

use anyhow::Result;
use sqlock::{Locks, SessionBackend};

use crate::contest::{Contest, Pace};
use crate::cycle::by_tasks;
use crate::report::Table;
use crate::servers::Servers;

use super::ours;

pub(crate) async fn run(servers: &Servers, pace: Pace) -> Result<Table> {
    let mut contest = Contest::new("Session locks: one task, beside locks that the process holds");
    let mut held = Vec::new();
    for count in [0, 1, 100, 10_000] {
        let locks = ours::session(&servers.fast).await?;
        held.push(hold(&locks, count).await?);
        contest = contest.entry(
            format!("{count} held"),
            "",
            by_tasks(1, ours::released(locks)),
        );
    }
    contest.run(pace).await
}

async fn hold(
    locks: &Locks<SessionBackend>,
    count: i64,
) -> Result<Vec<sqlock::LockGuard<<SessionBackend as sqlock::LockBackend>::Held>>> {
    // The keys of each count are its own, since all hold at once.
    let guards = (0..count).map(|key| locks.acquire(-1 - key - count * 10));
    Ok(futures_util::future::try_join_all(guards).await?)
}
