//! Medians and ratios, as Markdown and as JSON.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// What one contest came to.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    pub(crate) rows: Vec<Row>,
    /// What stands below the table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

/// What one contestant came to.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) median: f64,
    /// The middle half of the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quartiles: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99: Option<f64>,
    /// To the first row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<f64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) lacks: &'static str,
}

impl Row {
    pub(crate) fn of_samples(
        name: String,
        lacks: &'static str,
        samples: Vec<f64>,
        target: Option<f64>,
    ) -> Self {
        let sorted = sorted(samples);
        Self {
            name,
            median: quantile(&sorted, 0.5),
            quartiles: Some((quantile(&sorted, 0.25), quantile(&sorted, 0.75))),
            p99: None,
            ratio: None,
            target,
            lacks,
        }
    }

    /// A distribution of single times, of which the tail matters.
    pub(crate) fn of_latencies(name: String, lacks: &'static str, samples: Vec<f64>) -> Self {
        let sorted = sorted(samples);
        Self {
            name,
            median: quantile(&sorted, 0.5),
            quartiles: None,
            p99: Some(quantile(&sorted, 0.99)),
            ratio: None,
            target: None,
            lacks,
        }
    }

    /// A figure that is counted rather than timed.
    pub(crate) fn of_count(name: impl Into<String>, count: f64, target: Option<f64>) -> Self {
        Self {
            name: name.into(),
            median: count,
            quartiles: None,
            p99: None,
            ratio: None,
            target,
            lacks: "",
        }
    }
}

impl Table {
    pub(crate) fn of_times(title: String, mut rows: Vec<Row>) -> Self {
        if let Some(first) = rows.first().map(|row| row.median) {
            for row in &mut rows {
                row.ratio = Some(row.median / first);
            }
        }
        Self {
            title,
            unit: "µs",
            rows,
            notes: Vec::new(),
        }
    }

    pub(crate) fn of_counts(title: impl Into<String>, unit: &'static str, rows: Vec<Row>) -> Self {
        Self {
            title: title.into(),
            unit,
            rows,
            notes: Vec::new(),
        }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

fn sorted(mut samples: Vec<f64>) -> Vec<f64> {
    samples.sort_by(f64::total_cmp);
    samples
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

pub(crate) fn markdown(table: &Table) -> String {
    let has = |of: fn(&Row) -> bool| table.rows.iter().any(of);
    let spread = has(|row| row.quartiles.is_some());
    let tail = has(|row| row.p99.is_some());
    let ratio = has(|row| row.ratio.is_some());
    let target = has(|row| row.target.is_some());
    let lacks = has(|row| !row.lacks.is_empty());

    let mut columns = vec![String::new(), table.unit.to_owned()];
    columns.extend(spread.then(|| "middle half".to_owned()));
    columns.extend(tail.then(|| "p99".to_owned()));
    columns.extend(ratio.then(|| "ratio".to_owned()));
    columns.extend(target.then(|| "at most".to_owned()));
    columns.extend(lacks.then(|| "lacks".to_owned()));

    let mut out = format!("### {}\n\n| {} |\n", table.title, columns.join(" | "));
    let _ = writeln!(out, "|---|{}", "---:|".repeat(columns.len() - 1));
    for row in &table.rows {
        let mut cells = vec![row.name.clone(), figure(row.median)];
        if spread {
            cells.push((row.quartiles).map_or(String::new(), |(low, high)| {
                format!("{} to {}", figure(low), figure(high))
            }));
        }
        if tail {
            cells.push(row.p99.map_or(String::new(), figure));
        }
        if ratio {
            cells.push(
                row.ratio
                    .map_or(String::new(), |ratio| format!("{ratio:.2}")),
            );
        }
        if target {
            cells.push(
                row.target
                    .map_or(String::new(), |target| target.to_string()),
            );
        }
        if lacks {
            cells.push(row.lacks.to_owned());
        }
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    for note in &table.notes {
        let _ = writeln!(out, "\n{note}");
    }
    out
}

fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[derive(Serialize)]
struct Report<'a> {
    machine: &'a [(String, String)],
    tables: &'a [Table],
}

pub(crate) fn write(out: &Path, machine: &[(String, String)], tables: &[Table]) -> Result<()> {
    fs::create_dir_all(out)?;
    let json = serde_json::to_string_pretty(&Report { machine, tables })?;
    fs::write(out.join("benchmark.json"), json + "\n").context("cannot write the JSON")?;
    let mut text = String::new();
    for (name, value) in machine {
        let _ = writeln!(text, "- {name}: {value}");
    }
    for table in tables {
        let _ = write!(text, "\n{}", markdown(table));
    }
    fs::write(out.join("benchmark.md"), text).context("cannot write the table")
}
