//! Where a second connection is not to be had, is not served, or breaks.

use std::time::Duration;

use sqlock::{Error, Locks, SessionBackend};
use sqlock_postgres::preflight::{Backend, Pooler, examine, recommend, session_locks};
use sqlock_tests::TestDatabase;
use tokio::time::Instant;

use crate::{
    fake::{Answer, FakeServer},
    starts::refusal,
    support::{PATIENCE, SessionOptions, execute, run},
    warnings::warnings_of,
};

const POSTGRESQL: &str = "PostgreSQL 17.2 on x86_64-linux, compiled by gcc-13.2.0, 64-bit";

/// PostgreSQL by its words, whose answer to the `n`th question after its process is `answer`'s, by
/// connection.
async fn server(
    answer: impl Fn(usize, usize) -> Option<Answer> + Send + Sync + 'static,
) -> FakeServer {
    let asked = std::sync::Mutex::new(Vec::new());
    FakeServer::start(move |connection, sql| {
        if sql.contains("version()") {
            return Answer::text(POSTGRESQL);
        }
        if !sql.contains("pg_postmaster_start_time") {
            return Answer::unknown();
        }
        let mut asked = asked.lock().unwrap();
        let length = asked.len().max(connection + 1);
        asked.resize(length, 0);
        asked[connection] += 1;
        answer(connection, asked[connection]).unwrap_or_else(|| Answer::process(connection, "1"))
    })
    .await
}

/// A role with one connection (53300): no refusal, but a report and a warning that say so.
#[test]
fn a_role_with_one_connection_locks_and_is_warned() {
    let warnings = warnings_of(async {
        let database = TestDatabase::create().await;
        let mut admin = database.connect().await;
        let name = format!("one_connection_{}", database.name());
        let create = format!("create role {name} login connection limit 1");
        execute(&mut admin, &create).await;
        let url = database.url().replace("postgres@", &format!("{name}@"));

        let report = examine(&url.parse().unwrap()).await.unwrap();
        let Pooler::NotLooked { reason } = &report.pooler else {
            panic!("{report:?}");
        };
        assert!(reason.contains("too many connections"), "{reason}");
        assert!(report.doubt().is_some());
        assert_eq!(recommend(&report).backend, Some(Backend::Xact));

        let locks = Locks::new(SessionBackend::connect(&url).await.unwrap());
        locks.acquire(1).await.unwrap().release().await.unwrap();
        locks.shutdown().await.unwrap();
        execute(&mut admin, &format!("drop role {name}")).await;
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("could not be seen"), "{warnings:?}");
}

/// Poolers have codes of their own for their limits.
#[test]
fn a_second_connection_that_is_refused_is_no_refusal() {
    run(async || {
        for code in ["53300", "08P01", "XX000", "28000"] {
            let server = server(move |connection, _| {
                let is_second = connection == 1;
                is_second.then_some(Answer::Error(code, "no more connections allowed"))
            })
            .await;
            let report = session_locks(&server.url().parse().unwrap(), PATIENCE).await;
            let pooler = report.unwrap().pooler;
            assert!(matches!(pooler, Pooler::NotLooked { .. }), "{pooler:?}");
        }
    });
}

/// A pooler in session mode with one server connection lets the second wait for the first.
#[test]
fn a_second_connection_that_is_not_served_is_waited_for_briefly() {
    run(async || {
        let server = server(|connection, _| (connection == 1).then_some(Answer::Silence)).await;
        let started = Instant::now();
        let patience = Duration::from_millis(300);
        let report = session_locks(&server.url().parse().unwrap(), patience).await;
        let pooler = report.unwrap().pooler;
        assert!(matches!(pooler, Pooler::NotLooked { .. }), "{pooler:?}");
        assert!(started.elapsed() < PATIENCE);
    });
}

/// Alone, a connection still shows that its process changes.
#[test]
fn one_connection_shows_a_pooler_too() {
    run(async || {
        let server = server(|connection, asked| match connection {
            0 => Some(Answer::process(asked / 5, "1")),
            _ => Some(Answer::Error("53300", "too many connections")),
        })
        .await;
        let refused = session_locks(&server.url().parse().unwrap(), PATIENCE).await;
        let Err(Error::PoolerRefused { evidence }) = refused else {
            panic!("{refused:?}");
        };
        assert!(evidence.contains("one connection"), "{evidence}");
    });
}

/// That a connection breaks says nothing of a pooler: it is an error that passes, at whichever
/// question.
#[test]
fn a_connection_that_breaks_midway_is_an_outage() {
    run(async || {
        for broken in [0, 1] {
            for at in [1, 2, 5, 12] {
                for how in [Answer::HangUp, Answer::Error("57P01", "terminating")] {
                    let server = server(move |connection, asked| {
                        (connection == broken && asked == at).then(|| how.clone())
                    })
                    .await;
                    let error = refusal(&server.url()).await;
                    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
                    assert!(error.is_retryable());
                }
            }
        }
    });
}

/// The whole look has the time of a connection, and no more.
#[test]
fn a_server_that_falls_silent_is_not_waited_for() {
    run(async || {
        let limit = Duration::from_millis(500);
        for silent in [
            "version()",
            "pg_is_in_recovery",
            "pg_settings",
            "pg_backend_pid",
        ] {
            let server = FakeServer::start(move |_, sql| match sql {
                _ if sql.contains(silent) => Answer::Silence,
                _ if sql.contains("version()") => Answer::text(POSTGRESQL),
                _ => Answer::unknown(),
            })
            .await;
            let started = Instant::now();
            let hasty = SessionOptions::new().connect_timeout(limit);
            let error = hasty.connect(&server.url()).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
            assert!(started.elapsed() < limit * 4, "{silent}");
        }
    });
}
