//! The tables.

use sqlock::{
    Error, FencingFault, Locks, XactBackend,
    session::{Fencing, SessionOptions},
    xact::XactOptions,
};
use sqlock_tests::TestDatabase;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::task::JoinSet;

use crate::{
    kinds::{Kind, Row, Sequence},
    support::{execute, keys_held, node_with, run},
};

pub(crate) fn fenced() -> SessionOptions {
    SessionOptions::new().fencing(Fencing::new())
}

fn transactions(options: PgConnectOptions) -> Locks<XactBackend> {
    let pool = PgPoolOptions::new()
        .max_connections(2)
        .connect_lazy_with(options);
    Locks::new(XactOptions::new().fencing(Fencing::new()).with_pool(pool))
}

fn fault(error: &Error) -> &FencingFault {
    match error {
        Error::Fencing { fault, .. } => fault,
        other => panic!("{other:?}"),
    }
}

/// Case 48.
#[test]
fn fifty_processes_create_it_at_once() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut tasks = JoinSet::new();
        for _ in 0..50 {
            let url = database.url();
            tasks.spawn(async move { Fencing::new().create(&url).await });
        }
        for outcome in tasks.join_all().await {
            outcome.unwrap();
        }
        let guard = node_with(&database, fenced()).await.acquire("job").await;
        assert!(guard.unwrap().token().is_some());
    });
}

#[test]
fn without_the_option_there_is_no_token() {
    run(async || {
        let database = TestDatabase::create().await;
        Sequence::make(&database).await;
        let locks = node_with(&database, SessionOptions::new()).await;
        assert_eq!(locks.acquire("job").await.unwrap().token(), None);
    });
}

#[test]
fn what_is_missing_is_told_before_the_first_lock() {
    run(async || {
        let database = TestDatabase::create().await;
        let error = fenced().connect(&database.url()).await.unwrap_err();
        assert!(
            matches!(fault(&error), FencingFault::Missing { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("create it by"), "{error}");
        let elsewhere = Fencing::new().schema("nowhere").unwrap();
        let options = SessionOptions::new().fencing(elsewhere.clone());
        let error = options.connect(&database.url()).await.unwrap_err();
        assert!(error.to_string().contains("\"nowhere\""), "{error}");
        let error = elsewhere.create(&database.url()).await.unwrap_err();
        assert!(
            matches!(fault(&error), FencingFault::Missing { .. }),
            "{error}"
        );

        let locks = transactions(database.options());
        let error = locks.try_acquire("job").await.unwrap_err();
        assert!(
            matches!(fault(&error), FencingFault::Missing { .. }),
            "{error}"
        );
        assert_eq!(keys_held(&database).await, []);
        // what was found out is not kept
        Sequence::make(&database).await;
        let guard = locks.acquire("job").await.unwrap();
        assert!(guard.token().is_some());
    });
}

/// Somebody else's tables of the same names.
#[test]
fn another_shape_is_told_by_what_is_wrong() {
    let changes = [
        (
            "alter table sqlock_fencing drop column reserved",
            "no column reserved (bigint)",
        ),
        (
            "alter table sqlock_fencing_now alter column base type text",
            "no column base (bigint)",
        ),
        (
            "alter table sqlock_fencing_now set logged",
            "must be unlogged",
        ),
        ("drop sequence sqlock_fencing_seq", "sqlock_fencing_seq"),
        (
            "drop sequence sqlock_fencing_seq; create view sqlock_fencing_seq as select 1",
            "must be a sequence",
        ),
        ("delete from sqlock_fencing", "its row is not there"),
    ];
    run(async || {
        for (change, expected) in changes {
            let database = TestDatabase::create().await;
            Sequence::make(&database).await;
            execute(&mut database.connect().await, change).await;
            let error = match fenced().connect(&database.url()).await {
                Err(error) => error,
                Ok(backend) => Locks::new(backend).acquire("job").await.unwrap_err(),
            };
            fault(&error);
            assert!(error.to_string().contains(expected), "{change}: {error}");
            assert_eq!(keys_held(&database).await, [], "{change}");
            let error = transactions(database.options());
            let error = error.acquire("job").await.unwrap_err();
            assert!(error.to_string().contains(expected), "{change}: {error}");
            assert_eq!(keys_held(&database).await, [], "{change}");
        }
    });
}

/// Names that need their quotes.
#[test]
fn the_schema_can_have_any_name() {
    run(async || {
        let database = TestDatabase::create().await;
        let schema = r#"it's "odd" \ Schema"#;
        execute(
            &mut database.connect().await,
            r#"create schema "it's ""odd"" \ Schema""#,
        )
        .await;
        let fencing = Fencing::new().schema(schema).unwrap();
        fencing.create(&database.url()).await.unwrap();
        fencing.create(&database.url()).await.unwrap();
        let options = SessionOptions::new().fencing(fencing.clone());
        let locks = node_with(&database, options).await;
        let first = locks.acquire("job").await.unwrap().token();
        let pool = PgPoolOptions::new().connect_lazy_with(database.options());
        let locks = Locks::new(XactOptions::new().fencing(fencing).with_pool(pool));
        assert!(locks.acquire("job").await.unwrap().token() > first);
    });
}

/// Once they exist, nobody needs the right to create, and whoever lacks one is told which.
#[test]
fn a_role_needs_the_rights_that_are_named_and_no_more() {
    run(async || {
        for by_row in ["", "row"] {
            let database = TestDatabase::create().await;
            let sequence = "grant usage, select on sequence sqlock_fencing_seq to";
            let (tables, sequence) = if by_row.is_empty() {
                Sequence::make(&database).await;
                ("sqlock_fencing, sqlock_fencing_now", sequence)
            } else {
                Row::make(&database).await;
                ("sqlock_fencing", "grant usage on schema public to")
            };
            let role = format!("drawer_{by_row}_of_{}", database.name());
            let mut connection = database.connect().await;
            execute(
                &mut connection,
                &format!(
                    "create role \"{role}\" login; revoke create on schema public from public"
                ),
            )
            .await;
            let options = database.options().username(&role);
            let refused = fenced().connect_with(options.clone()).await;
            let locks = transactions(options.clone());
            let error = match refused {
                Err(error) => error,
                // a row's tokens need nothing before the first lock
                Ok(backend) => Locks::new(backend).acquire("job").await.unwrap_err(),
            };
            assert!(
                matches!(fault(&error), FencingFault::Denied { .. }),
                "{error}"
            );
            let error = locks.acquire("job").await.unwrap_err();
            assert!(
                matches!(fault(&error), FencingFault::Denied { .. }),
                "{error}"
            );
            execute(
                &mut connection,
                &format!(
                    "grant select, insert, update on {tables} to \"{role}\"; {sequence} \"{role}\""
                ),
            )
            .await;
            Fencing::new().create_with(options.clone()).await.unwrap();
            let first = locks.acquire("job").await.unwrap().token();
            assert!(first.is_some());
            let backend = fenced().connect_with(options).await.unwrap();
            let session = Locks::new(backend);
            assert!(session.acquire("job").await.unwrap().token() > first);
            session.shutdown().await.unwrap();
            drop((locks, session));
            execute(
                &mut connection,
                &format!(
                    "select pg_terminate_backend(pid, 10000) from pg_stat_activity
                     where usename = '{role}';
                     drop owned by \"{role}\"; drop role \"{role}\""
                ),
            )
            .await;
        }
    });
}

#[test]
fn a_connection_that_may_only_read_is_told_so() {
    run(async || {
        let database = TestDatabase::create().await;
        Sequence::make(&database).await;
        let options = database
            .options()
            .options([("default_transaction_read_only", "on")]);
        let error = fenced().connect_with(options.clone()).await.unwrap_err();
        assert_eq!(fault(&error), &FencingFault::ReadOnly);
        let locks = transactions(options);
        let error = locks.acquire("job").await.unwrap_err();
        assert_eq!(fault(&error), &FencingFault::ReadOnly);
        assert_eq!(keys_held(&database).await, []);
    });
}
