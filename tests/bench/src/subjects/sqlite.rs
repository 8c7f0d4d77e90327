//! Leases in a file, by processes of one host.

use std::env;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Result, ensure};
use clap::Args;
use futures_util::future::BoxFuture;
use sqlock::{Locks, SqliteBackend};
use tokio::process::Command;

use crate::contest::{Contest, Pace};
use crate::report::Table;

use super::ours;

#[derive(Debug, Args)]
pub(crate) struct Worker {
    file: PathBuf,
    key: i64,
    operations: u64,
}

impl Worker {
    pub(crate) async fn run(self) -> Result<()> {
        let locks = Locks::new(SqliteBackend::open(&self.file).await?);
        let cycle = ours::released(locks);
        for _ in 0..self.operations {
            cycle(self.key).await?;
        }
        Ok(())
    }
}

pub(crate) async fn run(pace: Pace, processes: u64) -> Result<Table> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("locks.db");
    let contest = Contest::new(format!(
        "Leases in a file of SQLite: processes: {processes}, a key each"
    ));
    let contest = if processes == 1 {
        let locks = Locks::new(SqliteBackend::open(&file).await?);
        contest.entry(
            "sqlock, released",
            "",
            crate::cycle::by_tasks(1, ours::released(locks)),
        )
    } else {
        contest.entry("sqlock, released", "", move |operations| {
            spawn(file.clone(), processes, operations)
        })
    };
    let table = contest.run(pace).await?;
    Ok(table.note("Each grant and each release is on the disk before it is answered."))
}

fn spawn(file: PathBuf, processes: u64, operations: u64) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        let share = operations.div_ceil(processes).to_string();
        let mut running = Vec::new();
        for key in 0..processes {
            let child = Command::new(env::current_exe()?)
                .arg("sqlite")
                .arg(&file)
                .args([&key.to_string(), &share])
                .stdin(Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
            running.push(child);
        }
        for mut child in running {
            ensure!(child.wait().await?.success(), "a process failed");
        }
        Ok(())
    })
}
