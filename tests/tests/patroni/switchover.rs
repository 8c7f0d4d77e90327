//! The leader hands over in order.

use std::time::Duration;

use sqlock::{Error, LossCause};
use sqlx::{Connection as _, PgConnection};
use tokio::time::{Instant, sleep};

use crate::{
    cluster::{Cluster, Mode, run},
    nodes::{FAILOVER, LONG, leases, session, token, xact},
    support::{ask, execute, within},
};

/// Sessions and transactions are lost when the old leader stops, and had from the new one; leases stay.
#[test]
#[ignore = "takes containers: scripts/test-patroni"]
fn while_locks_are_held() {
    run(async || {
        let cluster = Cluster::start(Mode::Synchronous).await;
        let url = cluster.url();
        let mut side = PgConnection::connect(&url).await.unwrap();
        execute(&mut side, "create table done (what text)").await;
        let held = session(&url).await.acquire("session").await.unwrap();
        let mut transaction = xact(&url).acquire("xact").await.unwrap();
        execute(transaction.connection(), "insert into done values ('lost')").await;
        let mut lease = leases(&url, LONG).acquire("lease").await.unwrap();
        let waiter = session(&url).await;
        let session_waiter =
            tokio::spawn(async move { waiter.acquire_within("session", LONG).await });
        let waiter = xact(&url);
        let xact_waiter = tokio::spawn(async move { waiter.acquire_within("xact", LONG).await });
        let (leader, candidate) = (cluster.leader().await, cluster.candidate().await);

        let started = Instant::now();
        let switching = cluster.switch_over(leader, &candidate);
        let lost = async {
            let lost = within(FAILOVER, "the session's loss", held.lost().wait()).await;
            println!(
                "switchover: the session's holder was told after {:?}",
                started.elapsed()
            );
            lost
        };
        let next = async {
            let next = within(FAILOVER, "a session's lock", session_waiter).await;
            println!(
                "switchover: its waiter was served after {:?}",
                started.elapsed()
            );
            assert!(held.check().is_err(), "two sessions hold it");
            next.unwrap().unwrap()
        };
        let ((), lost, next) = tokio::join!(switching, lost, next);
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
        assert!(token(&next) > token(&held));
        let mut next = within(FAILOVER, "a transaction's lock", xact_waiter)
            .await
            .unwrap()
            .unwrap();
        assert!(token(&next) > token(&transaction));
        let done: i64 = ask(next.connection(), "select count(*) from done").await;
        assert_eq!(done, 0);
        next.commit().await.unwrap();
        let commit = transaction.commit().await;
        println!("switchover: the transaction's commit: {commit:?}");
        assert!(
            matches!(
                commit,
                Err(Error::Lost { .. } | Error::CommitUnknown { .. })
            ),
            "{commit:?}"
        );
        assert!(lease.is_valid());
        within(FAILOVER, "a renewal", async {
            while lease.extend(LONG).await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        println!(
            "switchover: the lease was renewed after {:?}",
            started.elapsed()
        );
        assert!(
            leases(&url, LONG)
                .try_acquire("lease")
                .await
                .unwrap()
                .is_none()
        );
        assert_eq!(cluster.leader().await, candidate);
        let before = token(&lease);
        lease.release().await.unwrap();
        assert!(token(&leases(&url, LONG).acquire("lease").await.unwrap()) > before);
    });
}
