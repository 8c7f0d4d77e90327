//! Runs the fault laboratory over many seeds, and says what came of it.

use std::{env, fs, path::PathBuf, rc::Rc};

use anyhow::{Result, bail};
use clap::Parser;
use sqlock_tests::lab::{self, Backend, BackendResult, Flaw, Report, Setup, Statistics, Way};
use tokio::{
    sync::Semaphore,
    task::{JoinSet, LocalSet},
};

/// Contends under faults, and checks what came of it.
#[derive(Debug, Parser)]
struct Args {
    /// session, xact or ttl, or some of them
    #[arg(required = true)]
    backends: Vec<Backend>,
    /// How many seeds of each.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first of them; a single run is made again by this and `--seeds 1`.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// How many runs at once.
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// A flaw of the workers that the checker is to find.
    #[arg(long)]
    flaw: Option<Flaw>,
    /// Where histories are left.
    #[arg(long, default_value = "target/faults")]
    out: PathBuf,
    /// Where to write the table of what came of it, in Markdown.
    #[arg(long)]
    report: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    LocalSet::new().run_until(all(Args::parse())).await
}

async fn all(args: Args) -> Result<()> {
    let mut report = Report::default();
    let (mut bad, mut unmade) = (0, 0);
    for &backend in &args.backends {
        let (result, failed) = all_seeds(&args, backend).await?;
        bad += result.convicted;
        unmade += failed;
        report.results.push(result);
    }
    say(&report.to_string());
    if let Some(path) = &args.report {
        fs::write(path, report.to_string())?;
    }
    if bad + unmade > 0 {
        bail!(
            "{bad} runs broke a promise, {unmade} could not be made; histories are in {}",
            args.out.display()
        );
    }
    Ok(())
}

/// What came of them, and how many could not be run.
async fn all_seeds(args: &Args, backend: Backend) -> Result<(BackendResult, usize)> {
    let program = env::current_exe()?.with_file_name("lab-worker");
    let turns = Rc::new(Semaphore::new(args.at_once));
    let mut runs = JoinSet::new();
    for seed in args.first..args.first + args.seeds {
        let pooled = backend != Backend::Session && seed % 2 == 1;
        let setup = Setup {
            backend,
            way: if pooled { Way::Pooled } else { Way::Direct },
            flaw: args.flaw,
        };
        let directory = args.out.join(format!("{backend}-{seed}"));
        let (turns, program) = (Rc::clone(&turns), program.clone());
        runs.spawn_local(async move {
            let _turn = turns.acquire().await;
            let outcome = lab::run(seed, setup, program, &directory).await;
            (seed, outcome)
        });
    }
    let mut statistics = Statistics::default();
    let (mut convicted, mut unmade) = (0, 0);
    while let Some(done) = runs.join_next().await {
        let (seed, outcome) = match done {
            Ok((seed, Ok(outcome))) => (seed, outcome),
            // The servers of the tests panic where one does not start or stop.
            Ok((seed, Err(error))) => {
                unmade += 1;
                say(&format!("{backend} {seed} could not be run: {error:#}"));
                continue;
            }
            Err(panic) => {
                unmade += 1;
                say(&format!("a run of {backend} could not be made: {panic}"));
                continue;
            }
        };
        statistics.add(Statistics::of(&outcome.history));
        convicted += usize::from(!outcome.violations.is_empty());
        for violation in outcome.violations {
            say(&format!("{backend} {seed}: {violation}"));
        }
    }
    let result = BackendResult {
        backend,
        statistics,
        convicted,
    };
    Ok((result, unmade))
}

#[allow(clippy::print_stdout, reason = "what it is for")]
fn say(line: &str) {
    println!("{line}");
}
