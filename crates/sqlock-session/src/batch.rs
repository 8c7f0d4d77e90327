//! What one statement asks of the server, and what it answers.

use sqlock_core::{AdvisoryId, FencingToken, Mode};

/// What is asked about one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Free the key, then look whether another session waits for it.
    Unlock(Mode),
    /// Look whether another session waits for the key, and keep it.
    LookForWaiter,
    /// Look whether a writer of another session waits at the gate.
    LookForWriter,
    /// Take the key if it is free. A reader must find the gate open.
    Try(Mode),
    /// Take the wait slot, and a writer the gate as well, then take the key if it is free. What was
    /// taken to wait is given back with the grant.
    TryAsWaiter { mode: Mode, waiting: Waiting },
    /// Give back what was taken to wait, then look whether another session waits.
    StopWaiting(Waiting),
}

impl Step {
    /// Whether somebody can be given the lock after it.
    pub(crate) fn may_grant(self) -> bool {
        !matches!(self, Self::Unlock(_) | Self::StopWaiting(_))
    }

    /// Whether wait slot and gate are taken or given back.
    pub(crate) fn is_about_waiting(self) -> bool {
        matches!(self, Self::TryAsWaiter { .. } | Self::StopWaiting(_))
    }
}

/// What a session holds on the server while it waits for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waiting {
    /// Held shared by every session that waits: a releaser that cannot take it knows of them.
    pub(crate) slot: bool,
    /// Held exclusively by a writer that waits, so that new readers stay out.
    pub(crate) gate: bool,
}

impl Outcome {
    /// Whether the lock is held after `step`, and can be given to somebody.
    pub(crate) fn grants(&self, step: Step) -> bool {
        let is_held = matches!(step, Step::LookForWaiter | Step::LookForWriter);
        step.may_grant() && (is_held || self.done)
    }
}

impl Waiting {
    pub(crate) fn any(self) -> bool {
        self.slot || self.gate
    }

    pub(crate) fn locks(self) -> usize {
        usize::from(self.slot) + usize::from(self.gate)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: AdvisoryId,
    pub(crate) step: Step,
}

/// The rows of one statement, unlocks first.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) rows: Vec<Row>,
}

impl Batch {
    /// Without rows that have to do with waiting.
    pub(crate) fn is_plain(&self) -> bool {
        !self.rows.iter().any(|row| row.step.is_about_waiting())
    }

    /// With rows after which a lock can be handed out.
    pub(crate) fn may_grant(&self) -> bool {
        self.rows.iter().any(|row| row.step.may_grant())
    }

    pub(crate) fn has_waiters(&self) -> bool {
        self.rows
            .iter()
            .any(|row| matches!(row.step, Step::TryAsWaiter { .. }))
    }
}

/// The server's answer to one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Outcome {
    /// Whether the key was freed or taken.
    pub(crate) done: bool,
    /// Whether nobody else waits.
    pub(crate) quiet: bool,
    /// Whether the wait slot and the gate were had.
    pub(crate) waiting: Waiting,
    /// Drawn after the key was taken, or while it is held; where tokens are asked for.
    pub(crate) token: Option<FencingToken>,
}
