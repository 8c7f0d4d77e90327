//! What errors say.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::{error::Error as _, time::Duration};

use sqlock_core::{Error, FencingFault, InvalidKey, LockKey, LossCause};

const SOURCE: &str = "what lies under it";

fn all() -> Vec<Error> {
    let key = || LockKey::new("k").unwrap();
    let source = || SOURCE.into();
    let (backend, setting) = ("session", "max_locks_per_transaction");
    let mut errors = vec![
        Error::Timeout {
            key: key(),
            waited: Duration::from_secs(5),
        },
        Error::Aborted {
            key: key(),
            source: source(),
        },
        Error::CommitUnknown {
            key: key(),
            source: source(),
        },
        Error::NoTransaction,
        Error::StaleSnapshot {
            level: "repeatable read".into(),
        },
        Error::PoolerRefused {
            evidence: "the pid changed from 1 to 2".into(),
        },
        Error::UnsupportedServer {
            engine: "CockroachDB".into(),
            reason: "its session locks are granted to everybody".into(),
        },
        Error::Standby,
        Error::LockBudget {
            in_use: 8,
            budget: 7,
            setting,
        },
        Error::LockMemory {
            setting,
            source: source(),
        },
        Error::Deadlock { source: source() },
        Error::Fencing {
            backend,
            fault: FencingFault::ReadOnly,
            source: Some(source()),
        },
        Error::Unavailable {
            backend,
            source: source(),
        },
        Error::ShutDown { backend },
        Error::InvalidOption {
            option: "poll",
            reason: "it must not be zero".into(),
        },
        Error::Backend {
            backend,
            operation: "release",
            source: source(),
        },
    ];
    errors.extend(
        causes()
            .into_iter()
            .map(|cause| Error::Lost { key: key(), cause }),
    );
    errors.extend(faults().into_iter().map(|fault| Error::Fencing {
        backend,
        fault,
        source: None,
    }));
    errors.extend(invalid().into_iter().map(Error::InvalidKey));
    errors
}

fn causes() -> [LossCause; 12] {
    [
        LossCause::ConnectionClosed,
        LossCause::Unresponsive,
        LossCause::SessionChanged { orphaned_pid: 4711 },
        LossCause::Undetermined,
        LossCause::TransactionAborted,
        LossCause::TransactionEnded,
        LossCause::TransactionTimedOut,
        LossCause::Expired,
        LossCause::TakenOver,
        LossCause::Removed,
        LossCause::ShutDown,
        LossCause::OwnerGone,
    ]
}

fn faults() -> [FencingFault; 4] {
    let object = || "\"public\".\"sqlock_fencing\"".to_owned();
    [
        FencingFault::Missing { object: object() },
        FencingFault::Shape {
            object: object(),
            difference: "it has no column reserved (bigint)".to_owned(),
        },
        FencingFault::Denied {
            schema: "\"public\"".to_owned(),
        },
        FencingFault::Exhausted,
    ]
}

fn invalid() -> [InvalidKey; 6] {
    [
        InvalidKey::Empty,
        InvalidKey::ContainsNul,
        InvalidKey::TooLong {
            bytes: 513,
            max: 512,
        },
        InvalidKey::Namespace,
        InvalidKey::ReservedPair { class: 7 },
        InvalidKey::NoKeys,
    ]
}

/// Lower case, no full stop, one line, nothing left to fill in.
#[test]
fn messages_keep_to_one_form() {
    let causes = causes().map(|cause| cause.to_string());
    let invalid = invalid().map(|invalid| invalid.to_string());
    let messages = all().into_iter().map(|error| error.to_string());
    for message in messages.chain(causes).chain(invalid) {
        let first = message.chars().next().expect("a message");
        assert!(first.is_lowercase(), "{message}");
        assert!(!message.ends_with(['.', '!', ' ']), "{message}");
        assert!(
            !message.contains(['\n', '{', '}']) && !message.contains("  "),
            "{message}"
        );
    }
}

/// The source is told by `source()`, and not a second time by the message.
#[test]
fn the_source_is_not_repeated() {
    for error in all() {
        let Some(source) = error.source() else {
            continue;
        };
        assert!(!error.to_string().contains(&source.to_string()), "{error}");
    }
    let sources = all().into_iter().filter(|error| {
        error
            .source()
            .is_some_and(|source| source.to_string() == SOURCE)
    });
    assert_eq!(sources.count(), 7, "every error with a source tells it");
}

#[test]
fn messages_name_what_they_are_about() {
    let said: Vec<_> = all().iter().map(ToString::to_string).collect();
    for expected in [
        "gave up waiting for lock \"k\" after 5s",
        "lock \"k\" was lost: its connection was closed",
        "the backend was shut down",
        "raise max_locks_per_transaction on the server",
        "orphaned on pid 4711",
        "option poll: it must not be zero",
    ] {
        assert!(
            said.iter().any(|said| said.contains(expected)),
            "{expected}"
        );
    }
    let invalid = Error::from(InvalidKey::Empty);
    assert_eq!(invalid.to_string(), "invalid lock key");
    assert_eq!(invalid.source().unwrap().to_string(), "the name is empty");
}

#[test]
fn what_can_be_repeated_as_it_is() {
    let retryable = all().into_iter().filter(Error::is_retryable).count();
    assert_eq!(retryable, 5 + causes().len());
}
