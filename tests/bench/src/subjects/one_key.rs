//! Many tasks of one process on one key.

use std::sync::Arc;

use anyhow::Result;
use tokio::sync::Mutex;

use crate::contest::{Contest, Pace};
use crate::cycle::{cycle, on_one_key};
use crate::report::Table;
use crate::servers::Servers;

use super::ours;

pub(crate) async fn run(servers: &Servers, pace: Pace) -> Result<Table> {
    let locks = ours::session(&servers.fast).await?;
    let mutex = Arc::new(Mutex::new(()));
    let in_process = cycle(move |_| {
        let mutex = mutex.clone();
        async move {
            let _guard = mutex.lock().await;
            tokio::task::yield_now().await;
            Ok(())
        }
    });
    Ok(
        Contest::new("Session locks: 1,000 tasks of one process, one key")
            .entry(
                "tokio's mutex, yielding once",
                "any other process",
                on_one_key(1000, in_process),
            )
            .entry(
                "sqlock, awaited and dropped",
                "",
                on_one_key(1000, ours::awaited(locks)),
            )
            .run(pace)
            .await?
            .note("sqlx's lock needs a connection for each of the 1,000 here: not measured."),
    )
}
