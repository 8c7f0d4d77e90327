use std::{fmt, time::Duration};

use super::Grant;

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
    /// Nobody had a key for longer in the calm than what a dead holder leaves behind lasts.
    StillHeld {
        key: i64,
        after: Duration,
    },
    /// A worker that shut its locks down had more than before it made them.
    Leaked {
        process: u32,
        tasks: usize,
        sockets: usize,
    },
    LeftOver(String),
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
            Self::StillHeld { key, after } => {
                write!(f, "nobody had {key} within {after:.1?} of the calm")
            }
            Self::Leaked {
                process,
                tasks,
                sockets,
            } => write!(
                f,
                "process {process} leaked {tasks} tasks and {sockets} sockets"
            ),
            Self::LeftOver(what) => write!(f, "left over: {what}"),
        }
    }
}
