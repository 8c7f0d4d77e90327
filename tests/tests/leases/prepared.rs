//! Prepared statements where they do not belong (case 5): through a transaction pooler.

use sqlock::{
    Error,
    ttl::{Protocol, TtlOptions},
};
use sqlock_tests::{PgBouncer, PoolMode, TestDatabase, eventually};

use crate::{
    support::{PATIENCE, ask, run},
    tools::{LeaseLocks, database, locks, options},
};

/// Of a single server connection, so that clients meet on it.
async fn narrow_pooler(database: &TestDatabase) -> PgBouncer {
    let settings = PgBouncer::with(PoolMode::Transaction).pool_size(1);
    settings.start(database.server()).await
}

fn node(database: &TestDatabase, pooler: &PgBouncer) -> LeaseLocks {
    let options = TtlOptions::new().leases(options());
    let options = options.protocol(Protocol::Prepared);
    locks(options, &database.url_through(pooler))
}

fn is_told(error: &Error) {
    let Error::InvalidOption { option, reason } = error else {
        panic!("{error:?}");
    };
    assert_eq!(*option, "protocol");
    assert!(reason.contains("transaction pooler"), "{reason}");
    assert!(!error.is_retryable());
}

/// The second client makes a statement under a name that the first has taken; and the first finds
/// its own gone. Both are told.
#[test]
fn clients_that_meet_on_a_server_connection_are_told() {
    run(async || {
        let database = database().await;
        let pooler = narrow_pooler(&database).await;
        let (one, other) = (node(&database, &pooler), node(&database, &pooler));
        let lease = one.acquire("job").await.unwrap();
        is_told(&other.acquire("another").await.unwrap_err());
        // the server connection was closed with the transaction that failed on it
        is_told(&one.acquire("a third").await.unwrap_err());
        let held = other.backend().leases().await.unwrap();
        let held: Vec<_> = held.iter().map(|lease| &*lease.row).collect();
        assert_eq!(held, ["job"]);
        drop(lease);
    });
}

/// A statement of the same name and the same parameters, which says that the lease is granted.
const IMPOSTOR: &str = "prepare sqlx_s_1
    (int4[], int8[], text[], text[], int8[], text[], text[], text, int8)
    as select 'g', 0, 7::bigint, 0::bigint";

/// What another client's statement answers is no grant.
#[test]
fn another_clients_statement_grants_nothing() {
    run(async || {
        let database = database().await;
        let pooler = narrow_pooler(&database).await;
        let locks = node(&database, &pooler);
        // its first statement is the one that takes
        locks.acquire("job").await.unwrap().release().await.unwrap();
        let mut side = database.connect().await;
        let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid()";
        let _ended: i64 = ask(&mut side, end).await;
        eventually(PATIENCE, async || {
            let mut client = pooler.connect(database.name()).await;
            sqlx::raw_sql(IMPOSTOR).execute(&mut client).await.is_ok()
        })
        .await;
        is_told(&locks.try_acquire("job").await.unwrap_err());
        let held: i64 = ask(&mut side, "select count(owner) from sqlock_leases").await;
        assert_eq!(held, 0);
    });
}

/// What cannot go together is told before anything is sent.
#[test]
fn a_queue_wants_the_simple_protocol() {
    let url = "postgres://nobody@127.0.0.1:1/nowhere";
    let options = TtlOptions::new().protocol(Protocol::Prepared);
    for refused in [
        options.clone().queue().connect(url).map(drop),
        options.clone().listen_on(url).connect(url).map(drop),
        options.notify().connect(url).map(drop),
    ] {
        let option = Err(Error::InvalidOption {
            option: "protocol",
            reason: String::new(),
        });
        assert_eq!(
            std::mem::discriminant(&refused),
            std::mem::discriminant(&option),
            "{refused:?}"
        );
    }
}
