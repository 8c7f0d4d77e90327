use std::fmt;

use sqlock_core::AdvisoryId;

use super::execution::Execution;
use crate::{batch::Outcome, table::Work};

/// What the owner waits for.
pub(super) enum Phase {
    Idle,
    Listening(Work),
    Asking(Work, Execution),
    Answered(Work, Vec<Outcome>),
    Failed(Work),
    Announcing(Vec<AdvisoryId>),
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Listening(_) => f.write_str("listening"),
            Self::Asking(work, execution) => write!(f, "{execution:?} of {:?}", work.batch.rows),
            Self::Answered(work, outcomes) => {
                let answers: Vec<_> = work.batch.rows.iter().zip(outcomes).collect();
                write!(f, "answered {answers:?}")
            }
            Self::Failed(work) => write!(f, "failed {:?}", work.batch.rows),
            Self::Announcing(keys) => write!(f, "announcing {keys:?}"),
        }
    }
}
