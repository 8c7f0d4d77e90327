//! The primary dies while locks are held and waited for, and the standby takes over.

use sqlock::{Error, LossCause, Result};
use sqlock_tests::eventually;
use sqlx::Connection as _;

use crate::{
    cluster::{Cluster, Replication},
    nodes::{FAILOVER, LONG, SHORT, leases, session, token, xact},
    support::{PATIENCE, ask, execute, run, within},
};

#[test]
fn of_the_primary_of_an_asynchronous_standby() {
    run(async || locks_over_a_crash(Replication::Asynchronous).await);
}

#[test]
fn of_the_primary_of_a_synchronous_standby() {
    run(async || locks_over_a_crash(Replication::Synchronous).await);
}

/// Sessions and transactions are lost with the primary, and their holders told; whoever waits is
/// served by the new one. A lease goes on there, renewed by its holder.
async fn locks_over_a_crash(replication: Replication) {
    let cluster = Cluster::start(replication).await;
    let url = cluster.url();
    execute(
        &mut cluster.database.connect().await,
        "create table done (what text)",
    )
    .await;
    let (session_holder, xact_holder) = (session(&url).await, xact(&url));
    let (lease_holder, short_holder) = (leases(&url, LONG), leases(&url, SHORT));
    let held = session_holder.acquire("session").await.unwrap();
    let mut transaction = xact_holder.acquire("xact").await.unwrap();
    execute(transaction.connection(), "insert into done values ('lost')").await;
    let mut lease = lease_holder.acquire("lease").await.unwrap();
    let short = short_holder.acquire("short").await.unwrap();
    let tokens = (token(&held), token(&transaction), token(&lease));

    let waiter = session(&url).await;
    let session_waiter = tokio::spawn(async move { waiter.acquire_within("session", LONG).await });
    let waiter = xact(&url);
    let xact_waiter = tokio::spawn(async move { waiter.acquire_within("xact", LONG).await });
    let lease_waiter = leases(&url, LONG);
    let waiter = lease_waiter.clone();
    let lease_waiting = tokio::spawn(async move { waiter.acquire_within("lease", LONG).await });
    assert!(
        leases(&url, LONG)
            .try_acquire("lease")
            .await
            .unwrap()
            .is_none()
    );
    cluster.standby.wait_until_caught_up().await;

    cluster.primary.kill().await;
    // from the idle socket, before anybody else can have it
    let lost = within(PATIENCE, "the session's loss", held.lost().wait()).await;
    is_lost(&lost, &LossCause::ConnectionClosed);
    // at its own deadline, with nobody to ask
    let lost = within(SHORT + PATIENCE, "the lease's end", short.lost().wait()).await;
    is_lost(&lost, &LossCause::Expired);
    let tried = session_holder.try_acquire("session").await.map(drop);
    assert!(
        matches!(&tried, Err(error) if error.is_retryable()),
        "{tried:?}"
    );

    cluster.promote().await;
    let next = within(FAILOVER, "a session's lock", session_waiter).await;
    let next = next.unwrap().unwrap();
    assert!(token(&next) > tokens.0);
    next.release().await.unwrap();
    let mut next = within(FAILOVER, "a transaction's lock", xact_waiter)
        .await
        .unwrap()
        .unwrap();
    assert!(token(&next) > tokens.1);
    // what the holder's transaction did is gone, and its commit does not say otherwise
    let done: i64 = ask(next.connection(), "select count(*) from done").await;
    assert_eq!(done, 0);
    next.commit().await.unwrap();
    is_no_commit(transaction.commit().await);
    // what came to its end meanwhile can be had
    short_holder
        .acquire("short")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    // the lease is still its holder's, who renews it here
    assert!(lease.is_valid() && !lease_waiting.is_finished());
    within(FAILOVER, "a renewal", async {
        while lease.extend(LONG).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    assert!(lease_waiter.try_acquire("lease").await.unwrap().is_none());
    lease.release().await.unwrap();
    let next = within(FAILOVER, "a lease", lease_waiting)
        .await
        .unwrap()
        .unwrap();
    assert!(token(&next) > tokens.2);
}

fn is_lost(error: &Error, expected: &LossCause) {
    assert!(
        matches!(error, Error::Lost { cause, .. } if cause == expected),
        "{error:?}"
    );
}

fn is_no_commit(outcome: Result<()>) {
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, Error::Lost { .. } | Error::CommitUnknown { .. }),
        "{error:?}"
    );
}

/// A primary that crashes and comes back with what it had, without a standby's help: leases are kept,
/// and all else is as with a promotion.
#[test]
fn and_restart_of_the_same_server() {
    run(async || {
        let server = sqlock_tests::PostgresServer::start(&[]).await;
        let database = server.database().await;
        let url = database.url();
        let lease_holder = leases(&url, LONG);
        lease_holder.backend().create_table().await.unwrap();
        sqlock::session::Fencing::new().create(&url).await.unwrap();
        let (session_holder, xact_holder) = (session(&url).await, xact(&url));
        let held = session_holder.acquire("session").await.unwrap();
        let transaction = xact_holder.acquire("xact").await.unwrap();
        let mut lease = lease_holder.acquire("lease").await.unwrap();
        server.kill().await;
        let lost = within(PATIENCE, "the session's loss", held.lost().wait()).await;
        is_lost(&lost, &LossCause::ConnectionClosed);
        server.start_again().await;
        eventually(PATIENCE, async || {
            sqlx::PgConnection::connect(&url).await.is_ok()
        })
        .await;
        is_no_commit(transaction.commit().await);
        drop(
            session_holder
                .acquire_within("session", FAILOVER)
                .await
                .unwrap(),
        );
        drop(xact_holder.acquire_within("xact", FAILOVER).await.unwrap());
        assert!(
            leases(&url, LONG)
                .try_acquire("lease")
                .await
                .unwrap()
                .is_none()
        );
        within(FAILOVER, "a renewal", async {
            while lease.extend(LONG).await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        })
        .await;
    });
}
