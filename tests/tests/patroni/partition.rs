//! The leader reaches neither etcd nor its standbys, and its clients reach it, for longer than
//! Patroni's TTL.

use std::time::Duration;

use sqlock::{Error, LossCause};
use sqlock_tests::eventually;
use sqlx::{Connection as _, PgConnection};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    cluster::{Cluster, LEADER_TTL, Mode, run},
    nodes::{FAILOVER, LONG, SHORT, leases, session, token, xact},
    support::{PATIENCE, execute, within},
};

#[test]
#[ignore = "takes containers: scripts/test-patroni"]
fn of_an_asynchronous_leader() {
    run(async || partition(Mode::Asynchronous).await);
}

#[test]
#[ignore = "takes containers: scripts/test-patroni"]
fn of_a_synchronous_leader() {
    run(async || partition(Mode::Synchronous).await);
}

/// The old leader stops before another leads, so that sessions and transactions have one holder at a
/// time, and the first is told. A lease that only the old leader knows has two, where it could be
/// given at all: where replication is asynchronous. The second one's token is above.
async fn partition(mode: Mode) {
    let cluster = Cluster::start(mode).await;
    let (url, leader) = (cluster.url(), cluster.leader().await);
    let old = cluster.url_of(leader);
    let mut side = PgConnection::connect(&url).await.unwrap();
    execute(&mut side, "create table done (what text)").await;
    let session_holder = session(&url).await;
    let held = session_holder.acquire("session").await.unwrap();
    let mut transaction = xact(&url).acquire("xact").await.unwrap();
    let mut lease = leases(&url, LONG).acquire("lease").await.unwrap();
    let short = leases(&url, SHORT).acquire("short").await.unwrap();

    cluster.part(leader).await;
    let started = Instant::now();
    execute(transaction.connection(), "insert into done values ('old')").await;
    // a lease of which the others hear nothing
    let latest = timeout(PATIENCE, leases(&old, LONG).try_acquire("latest")).await;
    let latest = match (mode, latest) {
        (Mode::Asynchronous, Ok(Ok(Some(latest)))) => Some(latest),
        (Mode::Synchronous, Ok(Err(_)) | Err(_)) => None,
        (_, other) => panic!("{mode:?}: {other:?}"),
    };
    if mode == Mode::Synchronous {
        let lost = within(SHORT + PATIENCE, "the lease's end", short.lost().wait()).await;
        println!(
            "{mode:?}: a lease of {SHORT:?} ended after {:?}",
            started.elapsed()
        );
        assert!(matches!(
            lost,
            Error::Lost {
                cause: LossCause::Expired,
                ..
            }
        ));
    }
    let lost = within(
        LEADER_TTL + FAILOVER,
        "the session's loss",
        held.lost().wait(),
    )
    .await;
    println!(
        "{mode:?}: the session's holder was told after {:?}: {lost}",
        started.elapsed()
    );
    assert!(
        matches!(
            &lost,
            Error::Lost {
                cause: LossCause::ConnectionClosed,
                ..
            }
        ),
        "{lost:?}"
    );
    let others = async || {
        for node in ["one", "two", "three"] {
            if node != leader && cluster.is_primary(node).await {
                return true;
            }
        }
        false
    };
    assert!(
        !others().await,
        "another leads before the old one's holders know"
    );
    assert!(!cluster.is_primary(leader).await);

    eventually(LEADER_TTL + FAILOVER, others).await;
    println!("{mode:?}: another leads after {:?}", started.elapsed());
    let next = session_holder
        .acquire_within("session", FAILOVER)
        .await
        .unwrap();
    println!(
        "{mode:?}: the session's lock was had after {:?}",
        started.elapsed()
    );
    assert!(token(&next) > token(&held));
    let next = xact(&url).acquire_within("xact", FAILOVER).await.unwrap();
    assert!(token(&next) > token(&transaction));
    next.commit().await.unwrap();
    let commit = transaction.commit().await;
    println!("{mode:?}: the transaction's commit: {commit:?}");
    assert!(
        matches!(
            commit,
            Err(Error::Lost { .. } | Error::CommitUnknown { .. })
        ),
        "{commit:?}"
    );
    // what was replicated is its holder's still
    assert!(lease.is_valid());
    within(FAILOVER, "a renewal", async {
        while lease.extend(LONG).await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert!(
        leases(&url, LONG)
            .try_acquire("lease")
            .await
            .unwrap()
            .is_none()
    );
    let other = leases(&url, LONG)
        .acquire_within("latest", FAILOVER)
        .await
        .unwrap();
    if let Some(latest) = latest {
        assert!(latest.is_valid() && other.is_valid(), "two have it");
        assert!(token(&other) > token(&latest));
    }
    cluster.rejoin(leader).await;
    cluster.wait_until_whole().await;
    assert!(other.is_valid());
}
