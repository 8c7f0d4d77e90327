use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    time::Duration,
};

use super::{Backend, Entry, Event, Facts, Fault, HEARTBEAT, Setup};

/// How much later than its limits a holder may be told on a busy machine.
const SLACK: Duration = Duration::from_secs(5);

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is about in words")]
pub enum Violation {
    /// The first still took itself for the holder after the second had the lock.
    TwoHolders {
        key: i64,
        first: Grant,
        second: Grant,
        by: Duration,
    },
    /// A release was answered by `Ok` although another had the lock before it was asked for.
    LateRelease {
        key: i64,
        first: Grant,
        second: Grant,
    },
    TokenRepeated {
        key: i64,
        token: i64,
    },
    TokenWentBack {
        key: i64,
        before: i64,
        after: i64,
    },
    /// The resource took a write with a token below one that it had seen.
    WriteWentBack {
        key: i64,
        before: i64,
        after: i64,
    },
    CountedTwice {
        key: i64,
        count: i64,
    },
    UpdatesLost {
        key: i64,
        counted: i64,
        acknowledged: i64,
    },
    WorkWithoutCommit {
        key: i64,
        counted: i64,
        possible: i64,
    },
    Starved {
        process: u32,
    },
    LeftOver(String),
}

/// A grant, by its process and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grant {
    /// Whose.
    pub process: u32,
    /// Which.
    pub number: u32,
}

/// What becomes of one grant in a history.
#[derive(Debug)]
struct Tenure {
    grant: Grant,
    key: i64,
    token: Option<i64>,
    asked: i64,
    granted: i64,
    believed: Option<i64>,
    lost: Option<i64>,
    ending: Option<i64>,
    released: bool,
}

/// Every promise of the backend that a history breaks.
#[must_use]
pub fn check(history: &[Entry], facts: &Facts, setup: Setup) -> Vec<Violation> {
    let tenures = tenures(history);
    let mut found = Vec::new();
    if setup.backend == Backend::Xact {
        updates(history, facts, &tenures, &mut found);
    } else {
        exclusion(history, &tenures, setup, &mut found);
        tokens(&tenures, facts, &mut found);
    }
    starvation(history, facts, &mut found);
    found.extend(facts.leftovers.iter().cloned().map(Violation::LeftOver));
    found
}

fn tenures(history: &[Entry]) -> BTreeMap<Grant, Tenure> {
    let mut tenures = BTreeMap::new();
    for Entry { at, process, event } in history {
        let process = *process;
        if let Event::Granted {
            grant,
            key,
            token,
            asked,
        } = *event
        {
            let grant = Grant {
                process,
                number: grant,
            };
            let tenure = Tenure {
                grant,
                key,
                token,
                asked,
                granted: *at,
                believed: None,
                lost: None,
                ending: None,
                released: false,
            };
            tenures.insert(grant, tenure);
        }
    }
    for Entry { at, process, event } in history {
        let (Event::Believed { grant: number }
        | Event::Lost { grant: number, .. }
        | Event::Ending { grant: number }
        | Event::Released { grant: number }) = *event
        else {
            continue;
        };
        let Some(tenure) = tenures.get_mut(&Grant {
            process: *process,
            number,
        }) else {
            continue;
        };
        match event {
            Event::Believed { .. } => tenure.believed = tenure.believed.max(Some(*at)),
            Event::Lost { .. } => tenure.lost = Some(*at),
            Event::Ending { .. } => tenure.ending = Some(*at),
            _ => tenure.released = true,
        }
    }
    tenures
}

/// No two at one instant: a lease ends by the holder's own clock before another can have it; a
/// session's holder may learn of the end later, but learns of it.
fn exclusion(
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

fn tokens(tenures: &BTreeMap<Grant, Tenure>, facts: &Facts, found: &mut Vec<Violation>) {
    let mut seen = HashSet::new();
    for tenure in tenures.values() {
        let (key, Some(token)) = (tenure.key, tenure.token) else {
            continue;
        };
        if !seen.insert((key, token)) {
            found.push(Violation::TokenRepeated { key, token });
        }
        // Whoever asked after another had the lock has a higher one.
        for later in tenures.values() {
            let is_after = later.key == key && later.asked > tenure.granted;
            if let Some(after) = later.token.filter(|after| is_after && *after < token) {
                found.push(Violation::TokenWentBack {
                    key,
                    before: token,
                    after,
                });
            }
        }
    }
    let mut last = BTreeMap::new();
    for write in &facts.writes {
        let Some(token) = write.token else { continue };
        let before = last.entry(write.key).or_insert(token);
        if token < *before {
            found.push(Violation::WriteWentBack {
                key: write.key,
                before: *before,
                after: token,
            });
        }
        *before = token;
    }
}

/// What was acknowledged is there, once; what is unknown may be.
fn updates(
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

fn starvation(history: &[Entry], facts: &Facts, found: &mut Vec<Violation>) {
    let served = served_in_the_calm(history);
    let starved = facts
        .alive
        .iter()
        .filter(|process| !served.contains(process));
    found.extend(starved.map(|&process| Violation::Starved { process }));
}

/// The processes that had a lock once the faults had ended.
pub(super) fn served_in_the_calm(history: &[Entry]) -> HashSet<u32> {
    history
        .iter()
        .skip_while(|entry| entry.event != Event::Calm)
        .filter(|entry| matches!(entry.event, Event::Granted { .. }))
        .map(|entry| entry.process)
        .collect()
}

fn is_dead(history: &[Entry], process: u32) -> bool {
    history.iter().any(|entry| {
        matches!(
            entry.event,
            Event::Struck { fault: Fault::KillWorker, target: Some(target) } if target == process
        )
    })
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

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grant {} of process {}", self.number, self.process)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoHolders {
                key,
                first,
                second,
                by,
            } => write!(
                f,
                "two holders of {key}: {first} believed {by:?} after {second} had it, and was not told in time"
            ),
            Self::LateRelease { key, first, second } => write!(
                f,
                "{first} released {key} without an error after {second} had it"
            ),
            Self::TokenRepeated { key, token } => write!(f, "token {token} of {key} twice"),
            Self::TokenWentBack { key, before, after } => {
                write!(f, "a token of {key} went back from {before} to {after}")
            }
            Self::WriteWentBack { key, before, after } => write!(
                f,
                "a write to {key} with token {after} was accepted after one with {before}"
            ),
            Self::CountedTwice { key, count } => {
                write!(
                    f,
                    "two commits of {key} were acknowledged that counted to {count}"
                )
            }
            Self::UpdatesLost {
                key,
                counted,
                acknowledged,
            } => write!(
                f,
                "{acknowledged} commits of {key} were acknowledged and {counted} are there"
            ),
            Self::WorkWithoutCommit {
                key,
                counted,
                possible,
            } => write!(
                f,
                "{counted} commits of {key} are there and at most {possible} were made"
            ),
            Self::Starved { process } => {
                write!(f, "process {process} had no lock in the calm")
            }
            Self::LeftOver(what) => write!(f, "left over: {what}"),
        }
    }
}
