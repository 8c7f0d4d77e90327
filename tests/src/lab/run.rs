use std::path::{Path, PathBuf};

use anyhow::Result;
use tokio::time::sleep;

use crate::eventually::holds_within;

use super::{
    CALM, Entry, Event, Facts, KEYS, Schedule, Setup, Violation, check,
    checker::Calm,
    journal::{self, Journal},
    nemesis,
    world::World,
};

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    /// All that was written down.
    pub history: Vec<Entry>,
    /// What the servers said afterwards.
    pub facts: Facts,
    /// What was wrong.
    pub violations: Vec<Violation>,
}

/// Makes the run of a seed. Workers are processes of `program`, which calls
/// [`Worker::run`](super::Worker::run); their histories are left in `directory`.
///
/// # Errors
///
/// A server or a process cannot be started.
pub async fn run(seed: u64, setup: Setup, program: PathBuf, directory: &Path) -> Result<Outcome> {
    std::fs::create_dir_all(directory)?;
    let schedule = Schedule::of_seed(seed, setup);
    std::fs::write(
        directory.join("schedule.json"),
        serde_json::to_string_pretty(&schedule)?,
    )?;
    let journal = Journal::create(&directory.join("nemesis.jsonl"), 0)?;
    let mut world = World::make(setup, program, directory.to_owned()).await?;
    for step in schedule.steps {
        nemesis::strike(&mut world, step, &journal).await?;
    }
    journal.write(Event::Calm);
    let (at_least, at_most) = CALM;
    sleep(at_least).await;
    // Those who had none by then are found by the checker.
    holds_within(at_most, async || {
        let history = journal::read(directory).unwrap_or_default();
        let calm = Calm::of(&history).unwrap_or_default();
        let mut workers = world.workers.iter();
        workers.all(|worker| calm.processes.contains(&worker.number))
            && (0..KEYS).all(|key| calm.keys.contains_key(&key))
    })
    .await;
    journal.write(Event::Over);
    let facts = world.wind_up().await?;
    let history = journal::read(directory)?;
    let violations = check(&history, &facts, setup);
    Ok(Outcome {
        history,
        facts,
        violations,
    })
}
