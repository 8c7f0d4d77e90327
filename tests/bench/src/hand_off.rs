//! From one holder to the next, in another process or over another connection.

use std::env;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::clients::{Kind, Times};

/// Processes at most; beyond it each has several clients.
const PROCESSES: usize = 10;

/// Microseconds from a release that was asked for to the next holder's grant, where that is not the
/// one that released.
pub(crate) async fn measure(
    kind: Kind,
    url: &str,
    clients: usize,
    milliseconds: u64,
) -> Result<Vec<f64>> {
    let processes = clients.min(PROCESSES);
    let mut running = Vec::new();
    for index in 0..processes {
        let share = clients / processes + usize::from(index < clients % processes);
        running.push(Contender::start(kind, url, share, milliseconds).await?);
    }
    for contender in &mut running {
        contender.begin();
    }
    let mut all: Vec<(Times, usize)> = Vec::new();
    for (process, contender) in running.into_iter().enumerate() {
        let times = contender.times().await?;
        all.extend(times.into_iter().map(|times| (times, process)));
    }
    all.sort_unstable();
    let mut latencies = Vec::new();
    for pair in all.windows(2) {
        let [((_, left), from), ((had, _), to)] = pair else {
            continue;
        };
        ensure!(left <= had, "two held the lock at once");
        if from != to {
            latencies.push((had - left) as f64 / 1e3);
        }
    }
    ensure!(
        !latencies.is_empty(),
        "the lock never went to another process"
    );
    Ok(latencies)
}

struct Contender {
    process: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Contender {
    async fn start(kind: Kind, url: &str, clients: usize, milliseconds: u64) -> Result<Self> {
        let kind = match kind {
            Kind::Session => "session",
            Kind::Blocked => "blocked",
            Kind::Redis => "redis",
        };
        let mut process = Command::new(env::current_exe()?)
            .args(["contend", kind, url])
            .args([clients.to_string(), milliseconds.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = process.stdin.take();
        let output = process.stdout.take().context("standard output is piped")?;
        let mut output = BufReader::new(output).lines();
        let ready = output.next_line().await?;
        ensure!(
            ready.as_deref() == Some("ready"),
            "a contender did not start"
        );
        Ok(Self {
            process,
            input,
            output,
        })
    }

    fn begin(&mut self) {
        self.input.take();
    }

    async fn times(mut self) -> Result<Vec<Times>> {
        let mut times = Vec::new();
        while let Some(line) = self.output.next_line().await? {
            let (had, left) = line.split_once(' ').context("a contender's line")?;
            times.push((had.parse()?, left.parse()?));
        }
        let status = self.process.wait().await?;
        ensure!(status.success(), "a contender failed");
        Ok(times)
    }
}
