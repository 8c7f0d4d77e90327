use std::{collections::BTreeSet, fmt, time::Duration};

use super::{Backend, Fault, Statistics};

/// What came of the runs of one backend.
#[derive(Debug, Clone)]
pub struct Result {
    /// Whose locks.
    pub backend: Backend,
    /// In numbers.
    pub statistics: Statistics,
    /// How many runs broke a promise.
    pub convicted: usize,
}

/// A table in Markdown, with a column for each backend.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// In the order of the columns.
    pub results: Vec<Result>,
}

impl Report {
    fn row<T: fmt::Display>(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        value: impl Fn(&Result) -> T,
    ) -> fmt::Result {
        write!(f, "| {name} |")?;
        for result in &self.results {
            write!(f, " {} |", value(result))?;
        }
        writeln!(f)
    }

    fn faults(&self) -> BTreeSet<Fault> {
        let all = self.results.iter().map(|result| &result.statistics);
        all.flat_map(|statistics| statistics.faults.keys().chain(statistics.impossible.keys()))
            .copied()
            .collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.row(f, "", |result| format!("`{}`", result.backend))?;
        writeln!(f, "|---|{}", "---:|".repeat(self.results.len()))?;
        self.row(f, "seeds", |result| result.statistics.runs)?;
        self.row(f, "seeds that broke a promise", |result| result.convicted)?;
        self.row(f, "minutes, all together", |result| {
            result.statistics.time.as_secs() / 60
        })?;
        self.row(f, "acquisitions", |result| result.statistics.grants)?;
        self.row(f, "faults", |result| {
            result.statistics.faults.values().sum::<usize>()
        })?;
        for fault in self.faults() {
            self.row(f, &format!("… `{fault}`"), |result| {
                let statistics = &result.statistics;
                match (
                    statistics.faults.get(&fault),
                    statistics.impossible.get(&fault),
                ) {
                    (Some(count), _) => count.to_string(),
                    (None, Some(_)) => "not possible there".to_owned(),
                    (None, None) => "–".to_owned(),
                }
            })?;
        }
        self.row(f, "losses told", |result| result.statistics.losses.len())?;
        for percent in [50, 99] {
            let name = format!("… after the fault’s begin or end, p{percent}");
            self.row(f, &name, |result| shown(&result.statistics.losses, percent))?;
        }
        for percent in [50, 99] {
            let name = format!("a key had again in the calm, p{percent}");
            self.row(f, &name, |result| shown(&result.statistics.waits, percent))?;
        }
        self.row(f, "workers that ended in order", |result| {
            result.statistics.without_leaks
        })?;
        self.row(f, "tasks and sockets that leaked", |result| {
            result.statistics.leaks
        })
    }
}

fn shown(times: &[Duration], percent: usize) -> String {
    let mut times = times.to_vec();
    times.sort_unstable();
    let index = times.len().saturating_sub(1) * percent / 100;
    match times.get(index) {
        Some(time) => format!("{} ms", time.as_millis()),
        None => "–".to_owned(),
    }
}
