//! The table itself.

use std::error::Error as _;

use sqlock::{
    Locks, TtlBackend,
    ttl::{LeaseOptions, TtlOptions},
};
use sqlock_tests::TestDatabase;
use tokio::{task::JoinSet, time::timeout};

use crate::{
    support::{PATIENCE, ask, execute, put_decoys_first, run},
    tools::{TTL, create_table, database, node},
    waits::{Way, World, patient, until_queued},
};

/// Case 48.
#[test]
fn fifty_processes_create_it_at_once() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut tasks = JoinSet::new();
        for _ in 0..50 {
            let backend = TtlBackend::connect(&database.url()).unwrap();
            tasks.spawn(async move { backend.create_table().await });
        }
        for outcome in tasks.join_all().await {
            outcome.unwrap();
        }
        let lease = node(&database).acquire("job").await.unwrap();
        lease.release().await.unwrap();
    });
}

/// The error says what to do, and says it once.
#[test]
fn a_missing_table_says_how_to_create_it() {
    run(async || {
        let database = TestDatabase::create().await;
        let error = node(&database).try_acquire("job").await.unwrap_err();
        let mut said = vec![error.to_string()];
        let mut source = error.source();
        while let Some(error) = source {
            said.push(error.to_string());
            source = error.source();
        }
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(said[0], "ttl: acquire failed");
        assert!(
            said[1].contains("create it by `create_table()`"),
            "{said:?}"
        );
    });
}

/// Once it exists, nobody needs the right to create.
#[test]
fn a_role_that_may_not_create_can_use_it() {
    run(async || {
        let database = database().await;
        let role = format!("user_of_{}", database.name());
        let mut connection = database.connect().await;
        execute(
            &mut connection,
            &format!(
                "create role \"{role}\" login;
                 revoke create on schema public from public;
                 grant select, insert, update, delete on sqlock_leases to \"{role}\";
                 grant usage on sequence sqlock_leases_seq to \"{role}\""
            ),
        )
        .await;
        let backend = TtlOptions::new()
            .connect_with(database.options().username(&role))
            .unwrap();
        backend.create_table().await.unwrap();
        let locks = Locks::new(backend);
        locks.acquire("job").await.unwrap().release().await.unwrap();
        locks.shutdown().await.unwrap();
        let other = TtlOptions::new()
            .table("public", "another")
            .connect_with(database.options().username(&role))
            .unwrap();
        let error = other.create_table().await.unwrap_err();
        assert!(
            format!("{error:?}").contains("permission denied"),
            "{error:?}"
        );
        execute(
            &mut connection,
            &format!("drop owned by \"{role}\"; drop role \"{role}\""),
        )
        .await;
    });
}

/// A clock of somebody's own, for one, by which a lease would be over.
#[test]
fn what_the_search_path_puts_first_is_not_called() {
    run(async || {
        let database = TestDatabase::create().await;
        put_decoys_first(&database).await;
        let locks = node(&database);
        locks.backend().create_table().await.unwrap();
        locks.backend().create_table().await.unwrap();
        let lease = locks.acquire("job").await.unwrap();
        assert!(node(&database).try_acquire("job").await.unwrap().is_none());
        assert_eq!(locks.inspect("job").await.unwrap().len(), 1);
        // for longer than it lives without being renewed
        tokio::time::sleep(2 * TTL).await;
        lease.release().await.unwrap();
        let swept = locks.backend().sweep(std::time::Duration::ZERO).await;
        assert_eq!(swept.unwrap(), 1);
        locks.shutdown().await.unwrap();
    });
}

/// Those who wait and those who wake them call the server's own too.
#[test]
fn what_the_search_path_puts_first_is_not_called_by_waiters() {
    run(async || {
        let database = TestDatabase::create().await;
        put_decoys_first(&database).await;
        let often = || patient().poll_interval(std::time::Duration::from_millis(50));
        let options = || TtlOptions::new().leases(often()).listen_on(database.url());
        let node = || Locks::new(options().queue().connect(&database.url()).unwrap());
        let (one, other) = (node(), node());
        one.backend().create_table().await.unwrap();
        one.backend().check_listening().await.unwrap();
        let lease = one.acquire("job").await.unwrap();
        let locks = other.clone();
        let waiting = tokio::spawn(async move { locks.acquire("job").await });
        until_queued(&other, "job", 1).await;
        lease.release().await.unwrap();
        let lease = timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
        lease.release().await.unwrap();
        one.backend()
            .sweep(std::time::Duration::ZERO)
            .await
            .unwrap();
    });
}

/// Names that need their quotes.
#[test]
fn schema_and_table_can_have_any_name() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut connection = database.connect().await;
        execute(&mut connection, r#"create schema "it's ""odd"" \ Schema""#).await;
        let options = TtlOptions::new().table(r#"it's "odd" \ Schema"#, r#"Leases'; "x" -- \"#);
        let options = options.listen_on(database.url()).queue();
        let backend = options.connect(&database.url()).unwrap();
        backend.create_table().await.unwrap();
        backend.create_table().await.unwrap();
        let locks = Locks::new(backend);
        let lease = locks.acquire("job").await.unwrap();
        assert_eq!(locks.backend().leases().await.unwrap().len(), 1);
        lease.release().await.unwrap();
        assert_eq!(locks.backend().leases().await.unwrap(), []);
        for name in ["", "a\0b", &"x".repeat(60)] {
            TtlOptions::new()
                .table("public", name)
                .connect(&database.url())
                .unwrap_err();
        }
    });
}

/// Somebody else's table of the same name.
#[test]
fn a_table_of_another_shape_is_told_by_its_column() {
    run(async || {
        let database = database().await;
        let backend = TtlBackend::connect(&database.url()).unwrap();
        let mut connection = database.connect().await;
        execute(
            &mut connection,
            "alter table sqlock_leases drop column payload",
        )
        .await;
        let error = backend.create_table().await.unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("no column payload (text)"), "{text}");
        execute(
            &mut connection,
            "alter table sqlock_leases add column payload bigint",
        )
        .await;
        let error = backend.create_table().await.unwrap_err();
        let text = format!("{error:?}");
        assert!(
            text.contains("payload is bigint and must be text"),
            "{text}"
        );
    });
}

/// So is that of those who wait, and a name that is too long for it.
#[test]
fn a_table_of_waiters_of_the_wrong_shape_names_the_column() {
    run(async || {
        let world = World::create(Way::Direct).await;
        let mut connection = world.database.connect().await;
        let change = "alter table sqlock_leases_waiters drop column ticket";
        execute(&mut connection, change).await;
        let backend = world.queueing(patient());
        let error = backend.backend().create_table().await.unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("no column ticket (bigint)"), "{text}");
        // which is of no concern to others
        create_table(&world.database).await;
        let long = TtlOptions::new().table("public", "x".repeat(59));
        long.clone().connect(&world.database.url()).unwrap();
        let error = long.queue().connect(&world.database.url()).unwrap_err();
        assert!(error.to_string().contains("table"), "{error}");
    });
}

/// What is missing is said, and how to get it.
#[test]
fn a_missing_table_is_an_error_that_says_what_to_do() {
    run(async || {
        let database = TestDatabase::create().await;
        let locks = node(&database);
        for _ in 0..2 {
            let error = locks.try_acquire("job").await.unwrap_err();
            assert!(!error.is_retryable());
            assert!(format!("{error:?}").contains("create_table"), "{error:?}");
        }
        locks.acquire("job").await.unwrap_err();
        create_table(&database).await;
        locks.acquire("job").await.unwrap().release().await.unwrap();
    });
}

/// Rows that nobody uses go, tokens do not go back, and what is held stays.
#[test]
fn a_sweep_takes_the_unused_and_leaves_the_held() {
    run(async || {
        let database = database().await;
        let locks = node(&database);
        let held = locks.acquire("held").await.unwrap();
        let mut last = None;
        for _ in 0..5 {
            let lease = locks.acquire("idle").await.unwrap();
            assert!(last < lease.token(), "{last:?}");
            last = lease.token();
            lease.release().await.unwrap();
            locks
                .backend()
                .sweep(std::time::Duration::ZERO)
                .await
                .unwrap();
            let mut connection = database.connect().await;
            // beside the row that keeps the token
            let left = "select array_agg(name) from sqlock_leases where name <> ''";
            let left: Vec<String> = ask(&mut connection, left).await;
            assert_eq!(left, ["held"]);
        }
        held.release().await.unwrap();
    });
}

/// A TTL that cannot be is refused before anything is sent.
#[test]
fn impossible_options_are_refused() {
    let url = "postgres://nobody@127.0.0.1:1/nowhere";
    run(async || {
        for leases in [
            LeaseOptions::new().ttl(std::time::Duration::ZERO),
            LeaseOptions::new().ttl(std::time::Duration::MAX),
            LeaseOptions::new().poll_interval(std::time::Duration::ZERO),
        ] {
            TtlOptions::new().leases(leases).connect(url).unwrap_err();
        }
        let error = TtlBackend::connect("mysql://secret@x/y").unwrap_err();
        assert!(!format!("{error:?}").contains("secret"));
    });
}
