//! Contestants take turns, in an order that is drawn anew each round, so that what the machine does
//! beside us falls on all of them alike.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures_util::future::BoxFuture;
use rand::seq::SliceRandom as _;

use crate::report::{Row, Table};

const REST: Duration = Duration::from_millis(10);

/// How many rounds, and how long a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) rounds: usize,
    pub(crate) turn: Duration,
}

impl Pace {
    pub(crate) fn full() -> Self {
        Self {
            rounds: 9,
            turn: Duration::from_millis(250),
        }
    }

    pub(crate) fn quick() -> Self {
        Self {
            rounds: 3,
            turn: Duration::from_millis(100),
        }
    }
}

type Turn<'a> = Box<dyn FnMut(u64) -> BoxFuture<'a, Result<()>> + Send + 'a>;

struct Contestant<'a> {
    name: String,
    lacks: &'static str,
    turn: Turn<'a>,
    operations: u64,
    samples: Vec<f64>,
}

/// Measures microseconds an operation; the first contestant is what the others are compared with.
pub(crate) struct Contest<'a> {
    title: String,
    targets: Vec<(String, f64)>,
    contestants: Vec<Contestant<'a>>,
}

impl<'a> Contest<'a> {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            targets: Vec::new(),
            contestants: Vec::new(),
        }
    }

    /// The ratio to the first that the contestant of this name should not exceed.
    pub(crate) fn target(mut self, name: &str, at_most: f64) -> Self {
        self.targets.push((name.to_owned(), at_most));
        self
    }

    /// A contestant: `turn` does so many operations. What it does not do that ours does is `lacks`.
    pub(crate) fn entry(
        mut self,
        name: impl Into<String>,
        lacks: &'static str,
        turn: impl FnMut(u64) -> BoxFuture<'a, Result<()>> + Send + 'a,
    ) -> Self {
        self.contestants.push(Contestant {
            name: name.into(),
            lacks,
            turn: Box::new(turn),
            operations: 1,
            samples: Vec::new(),
        });
        self
    }

    pub(crate) async fn run(mut self, pace: Pace) -> Result<Table> {
        for contestant in &mut self.contestants {
            contestant.calibrate(pace.turn).await?;
        }
        let mut order: Vec<usize> = (0..self.contestants.len()).collect();
        for _ in 0..pace.rounds {
            order.shuffle(&mut rand::rng());
            for &index in &order {
                self.contestants[index].take_turn().await?;
            }
        }
        let rows = self
            .contestants
            .into_iter()
            .map(|contestant| {
                let at_most = (self.targets.iter())
                    .find(|(name, _)| *name == contestant.name)
                    .map(|(_, ratio)| *ratio);
                Row::of_samples(
                    contestant.name,
                    contestant.lacks,
                    contestant.samples,
                    at_most,
                )
            })
            .collect();
        Ok(Table::of_times(self.title, rows))
    }
}

impl Contestant<'_> {
    /// Finds how many operations a turn takes; warms up on the way.
    async fn calibrate(&mut self, turn: Duration) -> Result<()> {
        loop {
            tokio::time::sleep(REST).await;
            let took = self.time().await?;
            if took * 2 >= turn || self.operations >= 10_000_000 {
                let factor = turn.as_secs_f64() / took.as_secs_f64().max(1e-9);
                self.operations = ((self.operations as f64 * factor) as u64).max(1);
                return Ok(());
            }
            self.operations *= 2;
        }
    }

    async fn take_turn(&mut self) -> Result<()> {
        // What was dropped last may still be on its way to be released, and the key is the same.
        tokio::time::sleep(REST).await;
        let took = self.time().await?;
        let each = took.as_secs_f64() * 1e6 / self.operations as f64;
        self.samples.push(each);
        Ok(())
    }

    async fn time(&mut self) -> Result<Duration> {
        let start = Instant::now();
        (self.turn)(self.operations)
            .await
            .with_context(|| format!("{} failed", self.name))?;
        Ok(start.elapsed())
    }
}
