use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use super::{Entry, Event, Facts, HEARTBEAT, KEYS, TTL, Violation, nanos};

/// For how long what a dead holder had may keep others from it: a lease for its TTL, a session until
/// the server hears of its end; both of them once more by the one that came next; and time for a
/// busy machine.
const HELD: Duration = Duration::from_secs(5)
    .saturating_add(TTL.saturating_mul(2))
    .saturating_add(HEARTBEAT.saturating_mul(4));

/// Each worker had a lock in the calm, and each key had a holder soon.
pub(super) fn starvation(history: &[Entry], facts: &Facts, found: &mut Vec<Violation>) {
    let Some(calm) = Calm::of(history) else {
        return;
    };
    let starved = facts
        .alive
        .iter()
        .filter(|process| !calm.processes.contains(process));
    found.extend(starved.map(|&process| Violation::Starved { process }));
    for key in 0..KEYS {
        let first = calm.keys.get(&key).copied();
        // Never: until the run was over.
        let after = first.or(calm.length).unwrap_or(0);
        if after > nanos(HELD) {
            let after = Duration::from_nanos(u64::try_from(after).unwrap_or(0));
            found.push(Violation::StillHeld { key, after });
        }
    }
}

/// Whoever shut down in order has no more tasks and sockets than before.
pub(super) fn leaks(history: &[Entry], found: &mut Vec<Violation>) {
    for entry in history {
        let Event::Left { tasks, sockets } = entry.event else {
            continue;
        };
        if tasks + sockets > 0 {
            let process = entry.process;
            found.push(Violation::Leaked {
                process,
                tasks,
                sockets,
            });
        }
    }
}

/// What was had once the faults had ended.
#[derive(Debug, Default)]
pub(in super::super) struct Calm {
    /// Those that had a lock.
    pub(in super::super) processes: HashSet<u32>,
    /// After how long each key was had first, in nanoseconds.
    pub(in super::super) keys: BTreeMap<i64, i64>,
    length: Option<i64>,
}

impl Calm {
    pub(in super::super) fn of(history: &[Entry]) -> Option<Self> {
        let mut entries = history
            .iter()
            .skip_while(|entry| entry.event != Event::Calm);
        let begin = entries.next()?.at;
        let mut calm = Self::default();
        for entry in entries {
            match entry.event {
                Event::Granted { key, .. } => {
                    calm.processes.insert(entry.process);
                    calm.keys.entry(key).or_insert(entry.at - begin);
                }
                Event::Over => calm.length = Some(entry.at - begin),
                _ => {}
            }
        }
        Some(calm)
    }
}
