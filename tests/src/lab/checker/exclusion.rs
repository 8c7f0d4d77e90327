use std::{collections::BTreeMap, time::Duration};

use super::{
    Backend, Entry, Event, Fault, Grant, HEARTBEAT, Setup, Violation, is_dead, nanos,
    tenure::Tenure,
};

/// How much later than its limits a holder may be told on a busy machine.
const SLACK: Duration = Duration::from_secs(5);

/// No two at one instant: a lease ends by the holder's own clock before another can have it; a
/// session's holder may learn of the end later, but learns of it.
pub(super) fn exclusion(
    history: &[Entry],
    tenures: &BTreeMap<Grant, Tenure>,
    setup: Setup,
    found: &mut Vec<Violation>,
) {
    let mut by_time: Vec<_> = tenures.values().collect();
    by_time.sort_by_key(|tenure| (tenure.key, tenure.granted));
    for (index, first) in by_time.iter().enumerate() {
        let later = by_time.iter().skip(index + 1);
        for second in later.take_while(|second| second.key == first.key) {
            let over = first.lost.or(first.ending).max(first.believed);
            let has_ended = first.lost.is_some() || first.ending.is_some();
            if has_ended && over.is_some_and(|over| over < second.granted) {
                break;
            }
            let (key, first_grant, second_grant) = (first.key, first.grant, second.grant);
            if first.released && first.ending.is_some_and(|ending| ending > second.granted) {
                found.push(Violation::LateRelease {
                    key,
                    first: first_grant,
                    second: second_grant,
                });
            }
            let Some(believed) = first.believed.filter(|at| *at > second.granted) else {
                continue;
            };
            let is_told_in_time = first.lost.is_some_and(|lost| {
                let late = lost
                    - second.granted
                    - paused(history, first.grant.process, second.granted, lost);
                late <= nanos(HEARTBEAT * 2 + SLACK)
            });
            // A dead one is told nothing.
            let is_dead_in_time = is_dead(history, first.grant.process)
                && believed - second.granted <= nanos(HEARTBEAT * 2 + SLACK);
            let is_excused =
                setup.backend == Backend::Session && (is_told_in_time || is_dead_in_time);
            if !is_excused {
                found.push(Violation::TwoHolders {
                    key,
                    first: first_grant,
                    second: second_grant,
                    by: Duration::from_nanos(u64::try_from(believed - second.granted).unwrap_or(0)),
                });
            }
        }
    }
}

/// For how long a process was stopped, of that time, in nanoseconds.
fn paused(history: &[Entry], process: u32, from: i64, to: i64) -> i64 {
    let mut total = 0;
    let mut since = None;
    for entry in history {
        match entry.event {
            Event::Struck {
                fault: Fault::PauseWorker,
                target: Some(target),
            } if target == process => {
                since = Some(entry.at);
            }
            Event::Healed {
                fault: Fault::PauseWorker,
                target: Some(target),
            } if target == process => {
                let since = since.take().unwrap_or(entry.at);
                total += (entry.at.min(to) - since.max(from)).max(0);
            }
            _ => {}
        }
    }
    total
}
