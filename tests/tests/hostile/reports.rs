//! The look at a server that says nonsense.

use std::time::Duration;

use sqlock_postgres::{
    ServerFacts,
    preflight::{examine, look, recommend},
};
use sqlx::{Connection as _, PgConnection};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    fake::{Answer, BOOL, FakeServer, INT4, INT8, TEXT},
    panics,
    support::{run, within},
    twists::TWISTS,
};

const POSTGRESQL: &str = "PostgreSQL 17.2 on x86_64-linux, compiled by gcc-13.2.0, 64-bit";
const LIMIT: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(30);

const QUESTIONS: [&str; 6] = [
    "version()",
    "server_version_num",
    "pg_settings",
    "inet_server_addr() is not null",
    "pg_postmaster_start_time",
    "backend_start",
];

fn honest(connection: usize, sql: &str) -> Answer {
    let value = |kind, text: &str| (kind, Some(text.to_owned()));
    match sql {
        _ if sql.contains("server_version_num") => {
            Answer::Row(vec![value(BOOL, "f"), value(TEXT, "170002")])
        }
        _ if sql.contains("version()") => Answer::text(POSTGRESQL),
        _ if sql.contains("pg_settings") => {
            let setting = |name: &str, text: &str| {
                vec![value(TEXT, name), value(TEXT, text), value(TEXT, "s")]
            };
            let greatest = i64::MAX.to_string();
            Answer::Rows(vec![
                setting("max_connections", &greatest),
                setting("max_prepared_transactions", &greatest),
                setting("max_locks_per_transaction", &greatest),
                setting("tcp_keepalives_idle", &greatest),
                setting("tcp_keepalives_interval", &greatest),
                setting("tcp_keepalives_count", &greatest),
                setting("tcp_user_timeout", "-1"),
                setting("statement_timeout", "\u{1b}[2J"),
                setting("lock_timeout", ""),
                setting("of_no_name_that_we_know", "1"),
            ])
        }
        _ if sql.contains("inet_server_addr() is not null") => {
            Answer::Row(vec![value(BOOL, "t"), value(BOOL, "t")])
        }
        _ if sql.contains("pg_postmaster_start_time") => Answer::process(connection, "1"),
        _ if sql.contains("backend_start") => Answer::text("1"),
        _ => Answer::Done,
    }
}

#[test]
fn extreme_settings_are_told() {
    run(async || {
        panics::note();
        let server = FakeServer::start(honest).await;
        let options = server.url().parse().unwrap();
        let report = examine(&options);
        let report = within(PATIENCE, "the report", report).await.unwrap();
        assert!(report.lock_capacity.is_some_and(|locks| locks > 1_000_000));
        assert!(
            report
                .dangers
                .iter()
                .any(|danger| danger.setting == "tcp_user_timeout")
        );
        panics::assert_none();
    });
}

/// Whatever is told, it is a report or an error, in time.
#[test]
fn every_wrong_answer_to_every_question() {
    run(async || {
        panics::note();
        let mut cases = JoinSet::new();
        for question in QUESTIONS {
            for twist in TWISTS {
                while cases.len() >= 16 {
                    cases.join_next().await.unwrap().unwrap();
                }
                cases.spawn(async move {
                    let server = FakeServer::start(move |connection, sql| {
                        let answer = honest(connection, sql);
                        match sql.contains(question) {
                            true => twist.of(&answer),
                            false => answer,
                        }
                    })
                    .await;
                    let options = server.url().parse().unwrap();
                    let what = format!("{question}, {twist:?}");
                    // the whole of it has no limit but its caller's
                    if let Ok(Ok(report)) = timeout(LIMIT, examine(&options)).await {
                        assert!(!recommend(&report).reason.is_empty(), "{what}");
                    }
                    if let Ok(Ok(report)) = timeout(LIMIT, look(&options, LIMIT)).await {
                        drop((report.check_session_locks(), report.doubt()));
                    }
                });
            }
        }
        while let Some(case) = cases.join_next().await {
            case.unwrap();
        }
        panics::assert_none();
    });
}

#[test]
fn facts_of_any_size_give_a_budget() {
    run(async || {
        for number in [i64::MIN, -1, 0, 1, i64::MAX] {
            let number = (INT8, Some(number.to_string()));
            let server = FakeServer::start(move |_, _| {
                Answer::Row(vec![
                    (INT4, Some("7".to_owned())),
                    (BOOL, Some("f".to_owned())),
                    number.clone(),
                    number.clone(),
                    number.clone(),
                ])
            })
            .await;
            let mut connection = PgConnection::connect(&server.url()).await.unwrap();
            let facts = ServerFacts::look(&mut connection).await.unwrap();
            assert!(facts.lock_budget() <= facts.lock_capacity);
        }
        panics::assert_none();
    });
}
