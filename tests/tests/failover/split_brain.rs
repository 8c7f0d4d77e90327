//! The standby is promoted, and the old primary lives on for those who still reach it.

use std::time::Duration;

use sqlock::{Error, LossCause};
use tokio::time::timeout;

use crate::{
    cluster::{Cluster, Replication},
    nodes::{LONG, SHORT, leases, session, token, xact},
    support::{PATIENCE, execute, run, within},
};

/// Each side gives the same locks of every kind. Tokens of the new primary are above those of the old
/// one, also above those that it gives later.
#[test]
fn everybody_can_have_two_holders_where_replication_is_asynchronous() {
    run(async || {
        let cluster = Cluster::start(Replication::Asynchronous).await;
        let (old, new) = (cluster.url_of_old(), cluster.url_of_new());
        let (session_old, xact_old, leases_old) =
            (session(&old).await, xact(&old), leases(&old, SHORT));
        let held = session_old.acquire("session").await.unwrap();
        let transaction = xact_old.acquire("xact").await.unwrap();
        let before = leases_old.acquire("lease").await.unwrap();
        cluster.standby.wait_until_caught_up().await;
        cluster.standby.promote().await;

        let (session_new, xact_new, leases_new) =
            (session(&new).await, xact(&new), leases(&new, SHORT));
        let other_held = session_new.acquire("session").await.unwrap();
        let other_transaction = xact_new.acquire("xact").await.unwrap();
        // the replicated lease ends there by itself, since its holder renews it on the other side
        let other_lease = leases_new.acquire_within("lease", PATIENCE).await.unwrap();
        // two of each, and nobody is told, after more than a TTL
        tokio::time::sleep(SHORT).await;
        assert!(held.check().is_ok() && other_held.check().is_ok());
        assert!(before.is_valid() && other_lease.is_valid());
        let tokens = (
            token(&other_held),
            token(&other_transaction),
            token(&other_lease),
        );
        assert!(tokens.0 > token(&held));
        assert!(tokens.1 > token(&transaction));
        assert!(tokens.2 > token(&before));
        transaction.commit().await.unwrap();
        other_transaction.commit().await.unwrap();

        // what the old primary gives from now on is below what the new one gave
        drop((held, before));
        let held = session_old.acquire("session").await.unwrap();
        assert!(token(&held) < tokens.0);
        let transaction = xact_old.acquire("xact").await.unwrap();
        assert!(token(&transaction) < tokens.1);
        let lease = leases_old.acquire("lease").await.unwrap();
        assert!(token(&lease) < tokens.2);
    });
}

/// An old primary that waits for a standby which has left it cannot commit: it gives and renews no
/// leases, and commits no work. Advisory locks are given all the same.
#[test]
fn leases_and_commits_end_where_replication_is_synchronous() {
    run(async || {
        let cluster = Cluster::start(Replication::Synchronous).await;
        let (old, new) = (cluster.url_of_old(), cluster.url_of_new());
        execute(
            &mut cluster.database.connect().await,
            "create table done (what text)",
        )
        .await;
        let (session_old, xact_old, leases_old) =
            (session(&old).await, xact(&old), leases(&old, SHORT));
        // the base of tokens, which a backend's first lock settles with a commit
        drop(session_old.acquire("first").await.unwrap());
        xact_old
            .acquire("first")
            .await
            .unwrap()
            .commit()
            .await
            .unwrap();
        let lease = leases_old.acquire("lease").await.unwrap();
        cluster.standby.promote().await;

        // the holder knows before another has it, and does not get it again
        let other_lease = leases(&new, SHORT).acquire_within("lease", LONG).await;
        assert!(!lease.is_valid());
        let other_lease = other_lease.unwrap();
        let lost = within(PATIENCE, "the lease's end", lease.lost().wait()).await;
        assert!(
            matches!(
                lost,
                Error::Lost {
                    cause: LossCause::Expired,
                    ..
                }
            ),
            "{lost:?}"
        );
        assert!(token(&other_lease) > token(&lease));
        let again = leases_old.acquire_within("lease", SHORT).await.map(drop);
        assert!(again.is_err(), "{again:?}");

        // advisory locks have two holders still
        let held = session_old.acquire("session").await.unwrap();
        let session_new = session(&new).await;
        let other_held = session_new.acquire("session").await.unwrap();
        assert!(held.check().is_ok() && other_held.check().is_ok());
        assert!(token(&other_held) > token(&held));
        let mut transaction = xact_old.acquire("xact").await.unwrap();
        let other_transaction = xact(&new).acquire("xact").await.unwrap();
        assert!(token(&other_transaction) > token(&transaction));
        // but only one side's work is ever acknowledged
        execute(transaction.connection(), "insert into done values ('old')").await;
        let commit = timeout(Duration::from_secs(2), transaction.commit()).await;
        assert!(commit.is_err(), "{commit:?}");
        other_transaction.commit().await.unwrap();
    });
}
