//! Each backend, each of its questions, and each wrong answer.

use std::{fmt::Debug, time::Duration};

use sqlock::{
    Held, LockBackend, LockGuard, Locks, TtlBackend,
    session::Preflight,
    ttl::{LeaseOptions, TtlOptions},
    xact::{XactOptions, lock_all_in, try_lock_in},
};
use sqlx::{Connection as _, PgConnection, postgres::PgPoolOptions};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    fake::{Answer, BOOL, FakeServer, INT4, INT8, TEXT},
    panics,
    support::{SessionOptions, run, within},
    twists::{TWISTS, Twist},
};

const POSTGRESQL: &str = "PostgreSQL 17.2 on x86_64-linux, compiled by gcc-13.2.0, 64-bit";
/// Of each backend's own time limits.
const LIMIT: Duration = Duration::from_millis(300);
/// In which a few of them must have come to an end.
const PATIENCE: Duration = Duration::from_secs(30);
const AT_ONCE: usize = 16;

/// A question of a backend, by a word in it, and whether its answer grants the lock.
type Question = (&'static str, bool);

fn value(kind: i32, value: impl ToString) -> (i32, Option<String>) {
    (kind, Some(value.to_string()))
}

/// Tries all twists of all questions. What is had is `true` where `attempt` had the lock.
async fn twist_all(
    honest: fn(&str) -> Answer,
    questions: &[Question],
    attempt: impl AsyncFn(String) -> bool + Clone + 'static,
) {
    panics::note();
    // as it should be, it is had: or what comes would show nothing
    let server = FakeServer::start(move |_, sql| honest(sql)).await;
    let mut has_lock = false;
    // the machine may be slower than the limits
    for _ in 0..20 {
        has_lock = has_lock || within(PATIENCE, "the lock", attempt(server.url())).await;
    }
    assert!(has_lock);
    for (question, _) in questions {
        let asked = server.asked();
        assert!(
            asked.iter().any(|sql| sql.contains(question)),
            "{question}: {asked:?}"
        );
    }
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            let mut cases = JoinSet::new();
            for (question, grants) in questions.iter().copied() {
                for twist in TWISTS {
                    while cases.len() >= AT_ONCE {
                        cases.join_next().await.unwrap().unwrap();
                    }
                    let attempt = attempt.clone();
                    cases.spawn_local(async move {
                        let server = twisted(honest, question, twist).await;
                        let what = format!("{question}, {twist:?}");
                        let had = within(PATIENCE, &what, attempt(server.url())).await;
                        assert!(!(had && grants), "{what}: a lock that was not granted");
                    });
                }
            }
            while let Some(case) = cases.join_next().await {
                case.unwrap();
            }
        })
        .await;
    panics::assert_none();
}

async fn twisted(honest: fn(&str) -> Answer, question: &'static str, twist: Twist) -> FakeServer {
    FakeServer::start(move |_, sql| {
        let answer = honest(sql);
        match sql.contains(question) {
            true => twist.of(&answer),
            false => answer,
        }
    })
    .await
}

/// With and without a budget; whether either had it. Ends what it had, and the backend.
async fn take<B: LockBackend>(locks: Locks<B>) -> bool {
    let tried = locks.try_acquire("k").await;
    let mut had = end(tried).await;
    let waited = locks.acquire_within("k", LIMIT).await;
    had |= end(waited.map(Some)).await;
    timeout(LIMIT, locks.shutdown()).await.ok();
    had
}

async fn end<H: Held, E: Debug>(taken: Result<Option<LockGuard<H>>, E>) -> bool {
    let Ok(Some(guard)) = taken else {
        return false;
    };
    timeout(LIMIT, guard.release()).await.ok();
    true
}

pub(crate) fn xact(sql: &str) -> Answer {
    match sql {
        _ if sql.contains("version()") => Answer::text(POSTGRESQL),
        _ if sql.contains("server_version_num") => {
            Answer::Row(vec![value(BOOL, "f"), value(TEXT, 170_002)])
        }
        _ if sql.contains("set_config('sqlock.guard'") => {
            Answer::Row(vec![value(TEXT, "sentinel"), value(INT4, 0)])
        }
        _ if sql.contains("sqlock.guard") => Answer::Row(vec![value(INT4, 1)]),
        _ => Answer::Done,
    }
}

#[test]
fn locks_that_are_transactions() {
    run(async || {
        let questions = [
            ("version()", false),
            ("server_version_num", false),
            ("BEGIN", false),
            ("set_config('sqlock.guard'", true),
            ("commit and chain", false),
        ];
        twist_all(xact, &questions, async |url: String| {
            let pool = PgPoolOptions::new()
                .max_connections(2)
                .acquire_timeout(LIMIT)
                .connect_lazy(&url);
            take(Locks::new(XactOptions::new().with_pool(pool.unwrap()))).await
        })
        .await;
    });
}

/// A message that is shorter than its own header: sqlx panics. That is an error where the connection
/// belongs to a task of ours, and nobody waits for ever.
#[test]
fn what_the_driver_panics_on() {
    run(async || {
        let short = Twist::Bytes(b"D\x00\x00\x00\x02");
        let server = twisted(xact, "set_config('sqlock.guard'", short).await;
        let pool = PgPoolOptions::new().acquire_timeout(LIMIT);
        let locks = XactOptions::new().with_pool(pool.connect_lazy(&server.url()).unwrap());
        assert!(!within(PATIENCE, "xact", take(Locks::new(locks))).await);
        let server = twisted(session, "pg_try_advisory_lock(k)", short).await;
        let options = SessionOptions::new().preflight(Preflight::Skip);
        let backend = options.connect(&server.url()).await.unwrap();
        assert!(!within(PATIENCE, "session", take(Locks::new(backend))).await);
        let server = twisted(lease, "insert into", short).await;
        assert!(!within(PATIENCE, "ttl", take(leases(&server.url(), LIMIT))).await);
    });
}

/// Only an answer that says so commits.
#[test]
fn a_commit_that_was_not_confirmed_is_none() {
    run(async || {
        for twist in TWISTS {
            let server = twisted(xact, "commit and chain", twist).await;
            let pool = PgPoolOptions::new().connect_lazy(&server.url()).unwrap();
            let locks = Locks::new(XactOptions::new().with_pool(pool));
            let guard = locks.acquire_within("k", PATIENCE).await.unwrap();
            let is_committed = matches!(timeout(LIMIT, guard.commit()).await, Ok(Ok(())));
            // where the rows are of no account, the command's end is what counts
            let confirms = matches!(
                twist,
                Twist::NoRow
                    | Twist::OneMore
                    | Twist::Nulls
                    | Twist::FewerColumns
                    | Twist::NoColumns
                    | Twist::Words
                    | Twist::Number(_)
            );
            assert!(confirms || !is_committed, "{twist:?}");
        }
        panics::assert_none();
    });
}

pub(crate) fn session(sql: &str) -> Answer {
    match sql {
        _ if sql.contains("max_locks_per_transaction") => Answer::Row(vec![
            value(INT4, 7),
            value(BOOL, "f"),
            value(INT8, 64),
            value(INT8, 100),
            value(INT8, 0),
        ]),
        _ if sql.contains("set_config(w.name") => Answer::text("set"),
        _ if sql.contains("pg_try_advisory_lock(k)") => {
            Answer::Row(vec![value(INT4, 7), value(BOOL, "t"), (BOOL, None)])
        }
        _ if sql.contains("pg_advisory_unlock_all") => Answer::text(""),
        _ => Answer::Done,
    }
}

#[test]
fn locks_of_a_session() {
    run(async || {
        let questions = [
            ("set statement_timeout", false),
            ("set_config(w.name", false),
            ("max_locks_per_transaction", false),
            ("pg_try_advisory_lock(k)", true),
        ];
        twist_all(session, &questions, async |url: String| {
            let options = SessionOptions::new()
                .preflight(Preflight::Skip)
                .connect_timeout(LIMIT)
                .reconnect_limit(LIMIT)
                .heartbeat(LIMIT, LIMIT);
            match options.connect(&url).await {
                Ok(backend) => take(Locks::new(backend)).await,
                Err(_) => false,
            }
        })
        .await;
    });
}

pub(crate) fn lease(sql: &str) -> Answer {
    match sql {
        _ if sql.contains("insert into") => Answer::Rows(vec![
            vec![
                value(TEXT, "g"),
                value(INT4, 0),
                value(INT8, 5),
                value(INT8, 0),
            ],
            vec![
                value(TEXT, "r"),
                value(INT4, 0),
                value(INT8, 5),
                value(INT8, 9),
            ],
        ]),
        _ if sql.contains("greatest(t.expires_at") => {
            Answer::Row(vec![value(TEXT, "d"), value(INT4, 0), value(TEXT, "")])
        }
        _ if sql.contains("update") => Answer::Row(vec![
            value(TEXT, "b"),
            value(INT4, 0),
            value(INT8, 0),
            value(INT8, 0),
        ]),
        _ => Answer::Done,
    }
}

fn leases(url: &str, limit: Duration) -> Locks<TtlBackend> {
    let leases = LeaseOptions::new()
        .ttl(2 * limit)
        .statement_limit(limit)
        .outage_limit(limit);
    let options = TtlOptions::new().leases(leases);
    Locks::new(options.connect(url).unwrap())
}

#[test]
fn leases_in_a_table() {
    run(async || {
        let questions = [
            ("set local synchronous_commit", true),
            ("insert into", true),
        ];
        twist_all(lease, &questions, async |url: String| {
            take(leases(&url, LIMIT)).await
        })
        .await;
    });
}

/// A renewal that was not confirmed ends the lease at its deadline, and its holder knows.
#[test]
fn a_renewal_that_was_not_confirmed_is_none() {
    run(async || {
        let mut cases = JoinSet::new();
        for twist in TWISTS {
            cases.spawn(async move {
                let server = twisted(lease, "greatest(t.expires_at", twist).await;
                let locks = leases(&server.url(), 5 * LIMIT);
                let lease = locks.acquire_within("k", PATIENCE).await.unwrap();
                let lost = within(PATIENCE, "the loss", lease.lost().wait());
                // a second row takes nothing back of what the first one says
                if !matches!(twist, Twist::OneMore) {
                    let what = format!("{twist:?}");
                    assert!(!lost.await.to_string().is_empty(), "{what}");
                }
            });
        }
        cases.join_all().await;
        panics::assert_none();
    });
}

fn lock_in(sql: &str) -> Answer {
    match sql {
        _ if sql.contains("savepoint sqlock; select case") => Answer::Row(vec![
            value(INT4, 0),
            value(TEXT, "read committed"),
            value(INT8, 0),
            value(INT8, 0),
        ]),
        _ => Answer::Done,
    }
}

#[test]
fn locks_in_a_transaction_of_ones_own() {
    run(async || {
        let questions = [("savepoint sqlock; select case", true)];
        twist_all(lock_in, &questions, async |url: String| {
            let mut had = false;
            let mut connection = PgConnection::connect(&url).await.unwrap();
            let tried = timeout(LIMIT, try_lock_in(&mut connection, "k")).await;
            had |= matches!(tried, Ok(Ok(true)));
            let mut connection = PgConnection::connect(&url).await.unwrap();
            let waited = lock_all_in(&mut connection, ["k", "l"], LIMIT);
            had |= matches!(timeout(LIMIT, waited).await, Ok(Ok(())));
            had
        })
        .await;
    });
}
