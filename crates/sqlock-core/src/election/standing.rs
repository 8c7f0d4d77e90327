use std::sync::Arc;

use tokio::sync::watch;

use crate::{Error, Holder, Term};

/// Where a node stands in an election.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Standing {
    /// It waits for its turn.
    Following {
        /// Who leads, where [`Election::naming_the_leader`](crate::Election::naming_the_leader) was
        /// asked for, as of the last look; `None` also where nobody did at that moment.
        leader: Option<Holder>,
    },
    /// It leads.
    Leading(Term),
    /// It cannot stand at the moment, and tries again.
    Failing(Arc<Error>),
    /// The election does not run: not yet, or not any more.
    Stopped,
}

/// Whether a node does its part in an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// It leads.
    Leading,
    /// It waits for its turn.
    Following,
    /// Its term is over and its body has not stopped. This lasts for a moment, unless the body
    /// blocks its thread.
    Overdue,
    /// It cannot stand: the last attempt failed.
    Failing,
    /// The election does not run.
    Stopped,
}

impl Health {
    /// Whether a readiness probe may pass: the node leads or follows.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Leading | Self::Following)
    }
}

/// Tells where a node stands in an election, from anywhere in the process. Made by
/// [`Election::watch`](crate::Election::watch); cheap to clone and to ask.
#[derive(Debug, Clone)]
pub struct ElectionWatch(pub(super) watch::Receiver<Standing>);

impl ElectionWatch {
    /// Where the node stands now. A term that is over is never told as leading.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match &*self.0.borrow() {
            Standing::Leading(term) if !term.is_leading() => Standing::Following { leader: None },
            standing => standing.clone(),
        }
    }

    /// Whether the node leads, at this moment.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.health() == Health::Leading
    }

    /// Whether the node does its part. Asks nobody but this process.
    #[must_use]
    pub fn health(&self) -> Health {
        match &*self.0.borrow() {
            Standing::Leading(term) if term.is_leading() => Health::Leading,
            Standing::Leading(_) => Health::Overdue,
            Standing::Following { .. } => Health::Following,
            Standing::Failing(_) => Health::Failing,
            Standing::Stopped => Health::Stopped,
        }
    }

    /// Waits for the next change, and gives the latest standing; `None` once the election is over.
    /// One that comes and goes unseen is not told.
    ///
    /// # Cancel safety
    ///
    /// Safe: a change that was not told is told by the next call.
    pub async fn changed(&mut self) -> Option<Standing> {
        self.0.changed().await.ok()?;
        self.0.borrow_and_update();
        Some(self.standing())
    }
}
