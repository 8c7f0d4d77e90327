//! A resource that checks tokens, as the chapter on fencing shows it.

use std::time::Duration;

use sqlock::FencingToken;
use sqlock_tests::TestDatabase;
use sqlx::PgConnection;
use tokio::task::JoinSet;

use crate::{
    kinds::{Kind, Sequence},
    load::leases,
    record::Record,
    schema::fenced,
    support::{ask, execute, join_all, node_with, run},
};

/// The chapter's own statement.
const WRITE: &str = "update report set body = $2, last_token = $1
    where id = 1 and last_token < $1";
/// Where one holder writes more than once.
const WRITE_AGAIN: &str = "update report set body = $2, last_token = $1
    where id = 1 and last_token <= $1";

async fn resource(database: &TestDatabase) -> PgConnection {
    let mut connection = database.connect().await;
    execute(
        &mut connection,
        "create table report (
           id bigint primary key, body text not null, last_token bigint not null default 0);
         insert into report (id, body) values (1, 'empty')",
    )
    .await;
    connection
}

/// Whether the resource took it.
async fn write(
    connection: &mut PgConnection,
    statement: &'static str,
    token: FencingToken,
    body: &str,
) -> bool {
    let written = sqlx::query(statement)
        .bind(token.get())
        .bind(body)
        .execute(connection)
        .await;
    written.unwrap().rows_affected() == 1
}

async fn body(connection: &mut PgConnection) -> String {
    ask(connection, "select body from report").await
}

/// The server ends a session, and the work goes on as if it had not heard of it.
#[test]
fn a_session_that_was_lost_is_refused() {
    run(async || {
        let database = TestDatabase::create().await;
        Sequence::make(&database).await;
        let mut resource = resource(&database).await;
        let (one, other) = (
            node_with(&database, fenced()).await,
            node_with(&database, fenced()).await,
        );
        let late = one.acquire("report").await.unwrap();
        let late_token = late.token().unwrap();
        let holder = database.advisory_locks().await[0].pid;
        database.terminate(holder).await;
        let next = other.acquire("report").await.unwrap();
        let token = next.token().unwrap();
        assert!(write(&mut resource, WRITE, token, "of the next").await);
        assert!(write(&mut resource, WRITE_AGAIN, token, "again").await);
        for statement in [WRITE, WRITE_AGAIN] {
            assert!(!write(&mut resource, statement, late_token, "of the late").await);
        }
        assert_eq!(body(&mut resource).await, "again");
    });
}

/// A lease runs out under a holder that is paused: the database's clock goes on without it.
#[test]
fn a_lease_that_ran_out_is_refused() {
    run(async || {
        let database = TestDatabase::create().await;
        let (one, other) = (leases(&database.url()), leases(&database.url()));
        one.backend().create_table().await.unwrap();
        let mut resource = resource(&database).await;
        let late = one.acquire("report").await.unwrap();
        let late_token = late.token().unwrap();
        execute(
            &mut resource,
            "update sqlock_leases set expires_at = clock_timestamp()",
        )
        .await;
        let wait = Duration::from_secs(10);
        let next = other.acquire_within("report", wait).await.unwrap();
        assert!(write(&mut resource, WRITE, next.token().unwrap(), "of the next").await);
        assert!(!write(&mut resource, WRITE, late_token, "of the late").await);
        assert_eq!(body(&mut resource).await, "of the next");
    });
}

/// Rows are removed as soon as nobody holds them, while others acquire.
#[test]
fn a_sweep_takes_no_token_back() {
    run(async || {
        let database = TestDatabase::create().await;
        leases(&database.url())
            .backend()
            .create_table()
            .await
            .unwrap();
        let record = std::sync::Arc::new(Record::default());
        let mut tasks = JoinSet::new();
        for _ in 0..4 {
            let (locks, record) = (leases(&database.url()), std::sync::Arc::clone(&record));
            tasks.spawn(async move {
                let mut swept = 0;
                for round in 0..40 {
                    if let Some(lease) = locks.try_acquire(format!("{}", round % 3)).await.unwrap()
                    {
                        record.granted(&lease);
                        lease.release().await.unwrap();
                    }
                    swept += locks.backend().sweep(Duration::ZERO).await.unwrap();
                }
                swept
            });
        }
        let swept: u64 = join_all(tasks).await.into_iter().sum();
        assert!(swept > 0 && record.count() > 0);
    });
}
