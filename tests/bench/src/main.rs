//! sqlock beside its peers: interleaved rounds in one run, medians and ratios.

mod clients;
mod contest;
mod cycle;
mod hand_off;
mod machine;
mod measure;
mod memory;
mod peers;
mod report;
mod servers;
mod subjects;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

use crate::contest::Pace;
use crate::servers::Servers;

/// Counts for `memory`; elsewhere its two additions an allocation are paid by all alike.
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

#[derive(Debug, Parser)]
#[command(about, args_conflicts_with_subcommands = true)]
struct Args {
    /// How long it may take.
    #[arg(value_enum, default_value_t = Length::Full)]
    length: Length,
    /// Only the subjects whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// The directory that `performance.md`'s table and `benchmark.json` are written to.
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Length {
    /// Under ten minutes.
    Full,
    /// Under two.
    Quick,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// A process that contends for a key; started by the benchmark itself.
    #[command(hide = true)]
    Contend(clients::Contend),
    /// A process that works on a file of SQLite; started by the benchmark itself.
    #[command(hide = true)]
    Sqlite(subjects::sqlite::Worker),
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    match args.part {
        Some(Part::Contend(contend)) => return contend.run().await,
        Some(Part::Sqlite(worker)) => return worker.run().await,
        None => {}
    }
    let pace = match args.length {
        Length::Full => Pace::full(),
        Length::Quick => Pace::quick(),
    };
    let servers = Servers::start().await?;
    let mut tables = Vec::new();
    for (name, subject) in subjects::all() {
        if args.only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        eprintln!("{name}");
        let table = subject(&servers, pace).await?;
        println!("{}", report::markdown(&table));
        tables.push(table);
    }
    if let Some(out) = args.out {
        report::write(&out, &machine::describe(&servers).await?, &tables)?;
    }
    Ok(())
}
