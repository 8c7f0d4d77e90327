use std::collections::{BTreeMap, HashSet};

use super::{Entry, Event, Facts, Grant, Violation, is_dead, tenure::Tenure};

/// What was acknowledged is there, once; what is unknown may be.
pub(super) fn updates(
    history: &[Entry],
    facts: &Facts,
    tenures: &BTreeMap<Grant, Tenure>,
    found: &mut Vec<Violation>,
) {
    let mut acknowledged = BTreeMap::<i64, i64>::new();
    let mut unknown = BTreeMap::<i64, i64>::new();
    let mut counts = HashSet::new();
    for Entry { process, event, .. } in history {
        let key_of = |number: u32| {
            let grant = Grant {
                process: *process,
                number,
            };
            tenures.get(&grant).map(|tenure| tenure.key)
        };
        match *event {
            Event::Committed { grant, count } => {
                let Some(key) = key_of(grant) else { continue };
                *acknowledged.entry(key).or_default() += 1;
                if !counts.insert((key, count)) {
                    found.push(Violation::CountedTwice { key, count });
                }
            }
            Event::CommitUnknown { grant } => {
                let Some(key) = key_of(grant) else { continue };
                *unknown.entry(key).or_default() += 1;
            }
            _ => {}
        }
    }
    // A process that was killed while it committed has left no word.
    for tenure in tenures.values() {
        if tenure.ending.is_some() && !tenure.released && is_dead(history, tenure.grant.process) {
            *unknown.entry(tenure.key).or_default() += 1;
        }
    }
    for (&key, &counted) in &facts.counts {
        let acknowledged = acknowledged.get(&key).copied().unwrap_or(0);
        let possible = acknowledged + unknown.get(&key).copied().unwrap_or(0);
        if counted < acknowledged {
            found.push(Violation::UpdatesLost {
                key,
                counted,
                acknowledged,
            });
        }
        if counted > possible {
            found.push(Violation::WorkWithoutCommit {
                key,
                counted,
                possible,
            });
        }
    }
}
