use std::{fmt, str::FromStr};

use anyhow::{Context as _, Result};

/// What a worker does wrong on purpose, for the checker to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Takes itself for a holder without asking.
    NeverAsks,
    /// Goes on as a holder whatever it is told of a loss.
    DeafToLoss,
    /// Forgets some guards instead of dropping them.
    Leaks,
    /// Takes every commit for a success.
    TrustsCommits,
    /// Keeps its lock for ever, once it has one.
    NeverReleases,
    /// Reads outside the transaction what it counts up within.
    WorksOutside,
}

impl Flaw {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NeverAsks,
        Self::DeafToLoss,
        Self::Leaks,
        Self::TrustsCommits,
        Self::NeverReleases,
        Self::WorksOutside,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::NeverAsks => "never-asks",
            Self::DeafToLoss => "deaf-to-loss",
            Self::Leaks => "leaks",
            Self::TrustsCommits => "trusts-commits",
            Self::NeverReleases => "never-releases",
            Self::WorksOutside => "works-outside",
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Flaw {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|flaw| flaw.name() == name)
            .with_context(|| format!("no flaw is called {name}"))
    }
}
