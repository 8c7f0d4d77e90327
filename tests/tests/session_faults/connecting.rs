//! Connections that cannot be had, and what is told of them.

use std::{error::Error as _, fmt::Debug, fmt::Write as _, fs, path::PathBuf, time::Duration};

use sqlock::{Error, Locks, SessionBackend};
use sqlock_tests::{PostgresServer, TestDatabase};

use crate::support::{
    PATIENCE, SessionOptions, execute, ids_held, node, pid_of_holder, run, within,
};

const PASSWORD: &str = "hunter2-s3cret";

/// A wrong password, an unknown database, a refused port and a text that is no URL have an error of
/// their kind each, none of which repeats the password.
#[test]
fn errors_are_typed_and_keep_the_password() {
    run(async || {
        let guarded = Guarded::start().await;
        let (host, database) = (guarded.host(), guarded.database.name());
        let wrong = format!("postgres://app:wrong-{PASSWORD}@{host}/{database}");
        let error = refused(&wrong).await;
        assert!(
            matches!(
                error,
                Error::Backend {
                    operation: "connect",
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(!error.is_retryable());

        let unknown = format!("postgres://app:{PASSWORD}@{host}/nosuch");
        let error = refused(&unknown).await;
        assert!(
            matches!(
                error,
                Error::Backend {
                    operation: "connect",
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(!error.is_retryable());

        let nobody = format!("postgres://app:{PASSWORD}@127.0.0.1:1/{database}");
        let error = refused(&nobody).await;
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert!(error.is_retryable());

        // the server has no certificate: that does not pass by itself
        let encrypted = format!("postgres://app:{PASSWORD}@{host}/{database}?sslmode=require");
        let error = refused(&encrypted).await;
        assert!(
            matches!(
                error,
                Error::Backend {
                    operation: "connect",
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(!error.is_retryable());

        for text in [
            format!("app:{PASSWORD}@{host}/{database}"),
            format!("mysql://app:{PASSWORD}@{host}/{database}"),
            format!("postgres://app:{PASSWORD}@{host}:port/{database}"),
            format!("postgres://app:{PASSWORD}@[::1/{database}"),
            format!("postgres://app:{PASSWORD}@{host}/{database}?sslmode=never-{PASSWORD}"),
            format!("postgres://app:{PASSWORD}@{host}/{database}?port={PASSWORD}"),
        ] {
            let error = refused(&text).await;
            assert!(
                matches!(error, Error::InvalidOption { option: "url", .. }),
                "{error:?}"
            );
            assert!(!error.is_retryable());
        }
    });
}

/// An ordinary role, with a password, has all that it needs; and nothing that is printed of it
/// shows the password, before a loss and after.
#[test]
fn an_ordinary_role_locks_and_its_password_is_never_shown() {
    run(async || {
        let guarded = Guarded::start().await;
        let database = &guarded.database;
        let url = format!(
            "postgres://app:{PASSWORD}@{}/{}",
            guarded.host(),
            database.name()
        );
        let locks = Locks::new(SessionBackend::connect(&url).await.unwrap());
        let guard = locks.acquire(1).await.unwrap();
        assert_eq!(ids_held(database).await, [1]);
        let superuser = node(database).await;
        assert!(superuser.try_acquire(1).await.unwrap().is_none());
        let holders = locks.inspect(1).await.unwrap();
        assert_eq!(holders.len(), 1);
        keeps_the_password(&(&locks, locks.lock(1), &guard, &holders));

        database.terminate(pid_of_holder(database).await).await;
        let error = guard.lost().wait().await;
        shows_no_password(&error);
        // the role may not log in any more: the next is told so
        let mut admin = guarded.server.connect().await;
        execute(&mut admin, "alter role app password 'another'").await;
        let error = locks.acquire_within(1, PATIENCE).await.unwrap_err();
        shows_no_password(&error);
        assert!(matches!(error, Error::Backend { .. }), "{error:?}");
        keeps_the_password(&(&locks, &guard));
    });
}

/// One connection is all that a role needs to be allowed, also for the session after a loss.
#[test]
fn a_role_that_may_connect_once_locks() {
    run(async || {
        let guarded = Guarded::start().await;
        let database = &guarded.database;
        let mut admin = guarded.server.connect().await;
        execute(&mut admin, "alter role app connection limit 1").await;
        let url = format!(
            "postgres://app:{PASSWORD}@{}/{}",
            guarded.host(),
            database.name()
        );
        let locks = Locks::new(SessionBackend::connect(&url).await.unwrap());
        for _ in 0..10 {
            let guard = locks.acquire_within(1, PATIENCE).await.unwrap();
            let pid = pid_of_holder(database).await;
            database.terminate(pid).await;
            within(PATIENCE, "the loss", guard.lost().wait()).await;
        }
        // while it is held there is no room for a second, and later there may be
        let _guard = locks.acquire_within(1, PATIENCE).await.unwrap();
        let hasty = SessionOptions::new().connect_timeout(Duration::from_secs(1));
        let error = hasty.connect(&url).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert!(error.is_retryable());
    });
}

/// A server that asks the role `app` for its password.
struct Guarded {
    server: PostgresServer,
    database: TestDatabase,
    rules: PathBuf,
}

impl Guarded {
    async fn start() -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("sqlock-test-hba-{}-{count}", std::process::id());
        let rules = std::env::temp_dir().join(name);
        let text = "host all app all scram-sha-256\nhost all all all trust\n";
        fs::write(&rules, text).unwrap();
        let server = PostgresServer::start(&[("hba_file", rules.to_str().unwrap())]).await;
        let mut admin = server.connect().await;
        execute(
            &mut admin,
            &format!("create role app login password '{PASSWORD}'"),
        )
        .await;
        let database = server.database().await;
        Self {
            server,
            database,
            rules,
        }
    }

    /// With the port.
    fn host(&self) -> String {
        let url = self.server.url();
        let host = url.split_once('@').unwrap().1.split_once('/').unwrap().0;
        host.to_owned()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.rules);
    }
}

async fn refused(url: &str) -> Error {
    let error = SessionBackend::connect(url).await.unwrap_err();
    shows_no_password(&error);
    error
}

fn shows_no_password(error: &Error) {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut source = error.source();
    while let Some(error) = source {
        write!(text, "{error} {error:?}").unwrap();
        source = error.source();
    }
    assert!(!text.contains(PASSWORD), "{text}");
}

fn keeps_the_password(value: &impl Debug) {
    let text = format!("{value:?} {value:#?}");
    assert!(!text.contains(PASSWORD), "{text}");
}
