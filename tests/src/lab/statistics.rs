use std::{collections::BTreeMap, time::Duration};

use super::{Entry, Event, Fault, checker::Calm};

/// What happened in some runs, in numbers.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// How many runs.
    pub runs: usize,
    /// How long they took, together.
    pub time: Duration,
    /// How many locks were had.
    pub grants: usize,
    /// How often the nemesis struck, by kind.
    pub faults: BTreeMap<Fault, usize>,
    /// How often it could not, since the machine does not let it.
    pub impossible: BTreeMap<Fault, usize>,
    /// For each loss that was told: how long after the last that the nemesis did.
    pub losses: Vec<Duration>,
    /// For each key and run: after how long somebody had it in the calm.
    pub waits: Vec<Duration>,
    /// How many workers were looked at for leaks, and had none.
    pub without_leaks: usize,
    /// How many tasks and sockets leaked.
    pub leaks: usize,
}

impl Statistics {
    /// Of one run.
    #[must_use]
    pub fn of(history: &[Entry]) -> Self {
        let mut statistics = Self {
            runs: 1,
            ..Self::default()
        };
        if let [first, .., last] = history {
            statistics.time = duration(last.at - first.at);
        }
        let mut last = None;
        for entry in history {
            match &entry.event {
                Event::Granted { .. } => statistics.grants += 1,
                Event::Struck { fault, .. } => {
                    *statistics.faults.entry(*fault).or_default() += 1;
                    last = Some(entry.at);
                }
                Event::Healed { .. } => last = Some(entry.at),
                Event::Impossible { fault } => {
                    *statistics.impossible.entry(*fault).or_default() += 1;
                }
                Event::Lost { .. } => {
                    let delay = last.map_or(0, |last| entry.at - last);
                    statistics.losses.push(duration(delay));
                }
                Event::Left {
                    tasks: 0,
                    sockets: 0,
                } => statistics.without_leaks += 1,
                Event::Left { tasks, sockets } => statistics.leaks += tasks + sockets,
                _ => {}
            }
        }
        let calm = Calm::of(history).unwrap_or_default();
        statistics.waits = calm.keys.values().copied().map(duration).collect();
        statistics
    }

    /// Those of both.
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.time += other.time;
        self.grants += other.grants;
        for (fault, count) in other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        for (fault, count) in other.impossible {
            *self.impossible.entry(fault).or_default() += count;
        }
        self.losses.extend(other.losses);
        self.waits.extend(other.waits);
        self.without_leaks += other.without_leaks;
        self.leaks += other.leaks;
    }
}

fn duration(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}
