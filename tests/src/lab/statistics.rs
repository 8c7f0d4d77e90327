use std::{collections::BTreeMap, fmt, time::Duration};

use super::{Entry, Event, Fault};

/// What happened in some runs, in numbers.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// How many runs.
    pub runs: usize,
    /// How many locks were had.
    pub grants: usize,
    /// How often the nemesis struck, by kind.
    pub faults: BTreeMap<Fault, usize>,
    /// For each loss that was told: how long after the last that the nemesis did.
    pub delays: Vec<Duration>,
}

impl Statistics {
    /// Of one run.
    #[must_use]
    pub fn of(history: &[Entry]) -> Self {
        let mut statistics = Self {
            runs: 1,
            ..Self::default()
        };
        let mut last = None;
        for entry in history {
            match &entry.event {
                Event::Granted { .. } => statistics.grants += 1,
                Event::Struck { fault, .. } => {
                    *statistics.faults.entry(*fault).or_default() += 1;
                    last = Some(entry.at);
                }
                Event::Healed { .. } => last = Some(entry.at),
                Event::Lost { .. } => {
                    let delay = last.map_or(0, |last| entry.at - last);
                    let delay = u64::try_from(delay).unwrap_or(0);
                    statistics.delays.push(Duration::from_nanos(delay));
                }
                _ => {}
            }
        }
        statistics
    }

    /// Those of both.
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.grants += other.grants;
        for (fault, count) in other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        self.delays.extend(other.delays);
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        let at = |percent: usize| {
            let index = (delays.len().saturating_sub(1)) * percent / 100;
            delays.get(index).copied().unwrap_or_default()
        };
        writeln!(f, "runs: {}", self.runs)?;
        writeln!(f, "acquisitions: {}", self.grants)?;
        let struck: usize = self.faults.values().sum();
        writeln!(f, "faults: {struck}")?;
        for (fault, count) in &self.faults {
            let name = serde_json::to_string(fault).expect("a fault has a name");
            writeln!(f, "  {}: {count}", name.trim_matches('"'))?;
        }
        writeln!(
            f,
            "losses told: {}, {:.0?} at the median and {:.0?} at the 99th percentile after the fault's beginning or end",
            delays.len(),
            at(50),
            at(99)
        )
    }
}
