//! Elections over leases: when the leader steps down, and what those who follow see.

use std::{future::pending, ops::ControlFlow, time::Duration};

use sqlock::{Error, Locks, LossCause, Standing};
use tokio::{sync::mpsc, time::timeout};

use crate::{
    support::{PATIENCE, execute, run},
    tools::{database, node, node_with, options, seconds_left},
};

/// Renewals do not get through, and the body is over while the lease is still the leader's.
#[test]
fn a_leader_steps_down_before_its_lease_can_be_taken() {
    run(async || {
        let database = database().await;
        let locks = node(&database);
        let election = locks
            .election("leader")
            .unwrap()
            .ttl(Duration::from_secs(8))
            .step_down_before(Duration::from_secs(4));
        let (terms, mut begun) = mpsc::unbounded_channel();
        let (ends, mut ended) = mpsc::unbounded_channel::<()>();
        let leading = tokio::spawn(election.run(move |term| {
            terms.send(term).ok();
            let ends = ends.clone();
            async move {
                // closed when the body is dropped
                let _ends = ends;
                pending::<ControlFlow<()>>().await
            }
        }));
        let term = timeout(PATIENCE, begun.recv()).await.unwrap().unwrap();
        let mut blocker = database.connect().await;
        let lock = "begin; select from sqlock_leases where name = 'leader' for update";
        execute(&mut blocker, lock).await;

        let over = async {
            while term.is_leading() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, over).await.unwrap();
        let left = seconds_left(&mut blocker, "leader").await;
        assert!(left > 0.0, "it ran out {left} s ago");
        match term.check() {
            Err(Error::Lost { cause, .. }) => assert_eq!(cause, LossCause::SteppedDown),
            other => panic!("{other:?}"),
        }
        execute(&mut blocker, "rollback").await;
        // it stands again, and its next term is another one
        let next = timeout(PATIENCE, begun.recv()).await.unwrap().unwrap();
        assert!(next.token() > term.token() && !term.is_leading());
        leading.abort();
        assert!(timeout(PATIENCE, ended.recv()).await.unwrap().is_none());
    });
}

/// Those who follow see who leads, where they ask for it.
#[test]
fn those_who_follow_see_who_leads() {
    run(async || {
        let database = database().await;
        let (one, other) = (node(&database), node(&database));
        let leader = one.election("leader").unwrap().label("node 1");
        let leads = leader.watch();
        let leading = tokio::spawn(leader.run(|_| pending::<ControlFlow<()>>()));
        timeout(PATIENCE, async {
            while !leads.is_leading() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .unwrap();
        let follower = other.election("leader").unwrap();
        let follower = follower
            .retry(Duration::from_millis(20))
            .naming_the_leader();
        let mut watch = follower.watch();
        let following = tokio::spawn(follower.run(|_| pending::<ControlFlow<()>>()));
        let seen = async {
            loop {
                if let Some(Standing::Following {
                    leader: Some(leader),
                }) = watch.changed().await
                {
                    return leader;
                }
            }
        };
        let seen = timeout(PATIENCE, seen).await.unwrap();
        assert_eq!(seen.label.as_deref(), Some("node 1"));
        assert!(watch.health().is_ready() && !watch.is_leading());
        leading.abort();
        following.abort();
    });
}

/// Timings that cannot be are refused before anybody is asked.
#[test]
fn timings_are_looked_at_first() {
    run(async || {
        let nowhere = node_with(&database().await, options());
        let stand = |locks: &Locks<_>| locks.election("leader").unwrap();
        let second = Duration::from_secs(1);
        for election in [
            stand(&nowhere).step_down_before(second),
            stand(&nowhere).ttl(second).step_down_before(second * 2 / 3),
        ] {
            let refused = election.run(|_| pending::<ControlFlow<()>>()).await;
            assert!(
                matches!(
                    refused,
                    Err(Error::InvalidOption {
                        option: "step_down_before",
                        ..
                    })
                ),
                "{refused:?}"
            );
        }
    });
}
