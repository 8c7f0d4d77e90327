//! Commits that were under way when the primary of a synchronous standby died.

use std::time::Duration;

use sqlock::Error;
use sqlock_tests::{Stop, eventually};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    cluster::{Cluster, Replication},
    nodes::{FAILOVER, LONG, leases, xact},
    support::{PATIENCE, ask, execute, run, within},
};

/// Whoever was told that it is done finds it on the new primary; everybody else gets an error.
#[test]
fn that_were_acknowledged_are_there() {
    run(async || {
        let cluster = Cluster::start(Replication::Synchronous).await;
        let url = cluster.url();
        execute(
            &mut cluster.database.connect().await,
            "create table done (number bigint)",
        )
        .await;
        let mut tasks = JoinSet::new();
        for worker in 0..4 {
            let (xact, leases) = (xact(&url), leases(&url, LONG));
            tasks.spawn(async move {
                let (mut commits, mut held) = (Vec::new(), Vec::new());
                for round in 0.. {
                    let number = worker * 1_000_000 + round;
                    let Ok(mut guard) = xact.acquire_within(number, PATIENCE).await else {
                        break;
                    };
                    let insert = sqlx::query("insert into done values ($1)").bind(round);
                    let insert = insert.execute(guard.connection()).await;
                    if insert.is_err() || guard.commit().await.is_err() {
                        break;
                    }
                    commits.push(round);
                    match leases.try_acquire(number).await {
                        Ok(Some(lease)) => held.push(lease),
                        Ok(None) => panic!("nobody else wants it"),
                        Err(_) => break,
                    }
                }
                (commits, held)
            });
        }
        let mut side = cluster.standby.connect_to(&cluster.database).await;
        eventually(FAILOVER, async || {
            ask::<i64>(&mut side, "select count(*) from done").await > 40
        })
        .await;
        cluster.primary.kill().await;
        let done = within(FAILOVER, "the workers", tasks.join_all()).await;
        cluster.promote().await;
        let acknowledged: usize = done.iter().map(|(commits, _)| commits.len()).sum();
        let there: i64 = ask(&mut side, "select count(*) from done").await;
        let acknowledged = i64::try_from(acknowledged).unwrap();
        // of each worker, one may be there whose answer was lost
        assert!(
            (acknowledged..=acknowledged + 4).contains(&there),
            "{acknowledged}: {there}"
        );
        let other = leases(&cluster.url_of_new(), LONG);
        for lease in done.iter().flat_map(|(_, held)| held) {
            assert!(lease.is_valid(), "the machine is too slow for this test");
            let taken = other.try_acquire(lease.key().clone()).await.unwrap();
            assert!(taken.is_none(), "{} was lost", lease.key());
        }
    });
}

/// What waits for the standby has not happened yet, and its end is an error that says so.
#[test]
fn that_were_not_acknowledged_are_unknown() {
    run(async || {
        let cluster = Cluster::start(Replication::Synchronous).await;
        let url = cluster.url();
        execute(
            &mut cluster.database.connect().await,
            "create table done (what text)",
        )
        .await;
        let mut guard = xact(&url).acquire("job").await.unwrap();
        execute(guard.connection(), "insert into done values ('unknown')").await;
        cluster.standby.wait_until_caught_up().await;
        cluster.standby.server().stop(Stop::Fast).await;
        let mut commit = tokio::spawn(guard.commit());
        let leasing = leases(&url, LONG);
        let mut acquire = tokio::spawn(async move { leasing.try_acquire("lease").await });
        assert!(timeout(Duration::from_secs(1), &mut commit).await.is_err());
        assert!(timeout(Duration::ZERO, &mut acquire).await.is_err());
        cluster.primary.kill().await;
        let outcome = within(PATIENCE, "the commit's end", commit).await.unwrap();
        assert!(
            matches!(outcome, Err(Error::CommitUnknown { .. })),
            "{outcome:?}"
        );
        let outcome = within(PATIENCE, "the acquire's end", acquire)
            .await
            .unwrap();
        assert!(outcome.is_err(), "{outcome:?}");

        cluster.standby.server().start_again().await;
        cluster.promote().await;
        let mut next = xact(&url).acquire_within("job", FAILOVER).await.unwrap();
        let done: i64 = ask(next.connection(), "select count(*) from done").await;
        assert_eq!(done, 0, "the standby never had it");
        let lease = leases(&url, LONG).acquire_within("lease", FAILOVER).await;
        lease.unwrap().release().await.unwrap();
    });
}
