use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::{clock, schedule::Fault};

/// A line of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Nanoseconds of the machine's monotonic clock.
    pub at: i64,
    /// The process that wrote it; 0 is the nemesis.
    pub process: u32,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
///
/// What is claimed ("I hold it") has its time from before the claim was made, and what is had (a
/// grant) from after: so no pause in between makes two claims overlap that did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A worker has a lock.
    Granted {
        /// Which of the process.
        grant: u32,
        /// Of what.
        key: i64,
        /// Its fencing token, where the backend gives one.
        token: Option<i64>,
        /// When it was asked for.
        asked: i64,
    },
    /// The guard said, after this time, that the lock was still held.
    Believed {
        /// Of the process.
        grant: u32,
    },
    /// The holder was told that the lock is lost.
    Lost {
        /// Of the process.
        grant: u32,
        /// What it was told.
        cause: String,
    },
    /// The release, or the drop, is about to begin.
    Ending {
        /// Of the process.
        grant: u32,
    },
    /// The release was answered: the lock was held until then.
    Released {
        /// Of the process.
        grant: u32,
    },
    /// The commit was answered by `Ok`.
    Committed {
        /// Of the process.
        grant: u32,
        /// What the counter was set to.
        count: i64,
    },
    /// It is unknown whether there was a commit.
    CommitUnknown {
        /// Of the process.
        grant: u32,
    },
    /// An acquire, a release or a commit came to an error.
    Failed {
        /// Of what.
        key: i64,
        /// Its text.
        error: String,
    },
    /// The worker was told to end, and has ended by itself.
    Stopped,
    /// The nemesis struck.
    Struck {
        /// With what.
        fault: Fault,
        /// The worker process that it was meant for, where it was one.
        target: Option<u32>,
    },
    /// The fault is over.
    Healed {
        /// What it was.
        fault: Fault,
        /// The worker process that it was meant for, where it was one.
        target: Option<u32>,
    },
    /// The nemesis cannot do it on this machine.
    Impossible {
        /// What.
        fault: Fault,
    },
    /// What a worker had more of after its locks were shut down than before they were made.
    Left {
        /// Tasks of its runtime.
        tasks: usize,
        /// Open sockets.
        sockets: usize,
    },
    /// No more faults.
    Calm,
    /// The run is over: workers are told to end.
    Over,
}

/// Where a process writes its history: a line at a time, so that a kill loses none.
#[derive(Debug)]
pub(super) struct Journal {
    process: u32,
    file: Mutex<File>,
}

impl Journal {
    pub(super) fn create(path: &Path, process: u32) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self {
            process,
            file: Mutex::new(file),
        })
    }

    pub(super) fn write(&self, event: Event) {
        self.write_at(clock::now(), event);
    }

    pub(super) fn write_at(&self, at: i64, event: Event) {
        let entry = Entry {
            at,
            process: self.process,
            event,
        };
        let mut line = serde_json::to_string(&entry).expect("an entry is JSON");
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .expect("the journal can be written");
    }
}

/// All histories of a directory as one, by time.
pub(super) fn read(directory: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        for line in fs::read_to_string(&path)?.lines() {
            // A killed process may leave half a line.
            if let Ok(entry) = serde_json::from_str::<Entry>(line) {
                entries.push(entry);
            }
        }
    }
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}
