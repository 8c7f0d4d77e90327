//! What a history says of the promises.

mod ends;
mod exclusion;
mod tenure;
mod tokens;
mod updates;
mod violation;

pub(super) use ends::Calm;
pub use tenure::Grant;
pub use violation::Violation;

use std::time::Duration;

use super::{Backend, Entry, Event, Facts, Fault, HEARTBEAT, KEYS, Setup, TTL};

/// Every promise of the backend that a history breaks.
#[must_use]
pub fn check(history: &[Entry], facts: &Facts, setup: Setup) -> Vec<Violation> {
    let tenures = tenure::tenures(history);
    let mut found = Vec::new();
    if setup.backend == Backend::Xact {
        updates::updates(history, facts, &tenures, &mut found);
    } else {
        exclusion::exclusion(history, &tenures, setup, &mut found);
        tokens::tokens(&tenures, facts, &mut found);
    }
    ends::starvation(history, facts, &mut found);
    ends::leaks(history, &mut found);
    found.extend(facts.leftovers.iter().cloned().map(Violation::LeftOver));
    found
}

fn is_dead(history: &[Entry], process: u32) -> bool {
    history.iter().any(|entry| {
        matches!(
            entry.event,
            Event::Struck { fault: Fault::KillWorker, target: Some(target) } if target == process
        )
    })
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
