//! An asynchronous standby that lacks the last commits.

use sqlock::{Error, LossCause, ttl::TtlOptions};
use sqlock_tests::Stop;

use crate::{
    cluster::{Cluster, Replication},
    nodes::{LONG, leases, session, token, xact},
    support::{ask, execute, run, within},
};

/// A lease of which the standby knows nothing can be had from it, while its holder believes in it.
/// The token of the second is above that of the first, and its renewal tells the first.
#[test]
fn two_have_a_lease_that_was_not_replicated() {
    run(async || {
        let cluster = Cluster::start(Replication::Asynchronous).await;
        let (old, new) = (cluster.url_of_old(), cluster.url_of_new());
        let url = cluster.url();
        let holder = leases(&url, LONG);
        // a key that the standby knows, and one that it does not
        holder
            .acquire("known")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        cluster.standby.wait_until_caught_up().await;
        cluster.standby.server().stop(Stop::Fast).await;
        for _ in 0..5 {
            holder
                .acquire("known")
                .await
                .unwrap()
                .release()
                .await
                .unwrap();
        }
        let known = holder.acquire("known").await.unwrap();
        let unknown = holder.acquire("unknown").await.unwrap();
        let old_session = session(&old).await.acquire("job").await.unwrap();
        let old_xact = xact(&old).acquire("another").await.unwrap();
        let advisory = (token(&old_session), token(&old_xact));
        cluster.primary.kill().await;
        cluster.standby.server().start_again().await;
        cluster.standby.promote().await;

        let other = leases(&new, LONG);
        let other_known = other.acquire("known").await.unwrap();
        let other_unknown = other.acquire("unknown").await.unwrap();
        // two holders at one time
        assert!(known.is_valid() && other_known.is_valid());
        assert!(unknown.is_valid() && other_unknown.is_valid());
        assert!(token(&other_known) > token(&known));
        assert!(token(&other_unknown) > token(&unknown));
        assert!(token(&session(&new).await.acquire("job").await.unwrap()) > advisory.0);
        assert!(token(&xact(&new).acquire("another").await.unwrap()) > advisory.1);

        // once the way leads to the new primary, the next renewal tells
        cluster.lead_to_new();
        let mut known = known;
        let told = within(LONG, "the answer to a renewal", async {
            loop {
                match known.extend(LONG).await {
                    Err(error @ Error::Lost { .. }) => return error,
                    _ => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
                }
            }
        })
        .await;
        assert!(
            matches!(
                told,
                Error::Lost {
                    cause: LossCause::TakenOver,
                    ..
                }
            ),
            "{told:?}"
        );
        assert!(other_known.is_valid());
    });
}

/// A server that keeps its timeline to itself has leases all the same, whose tokens rise by its clock
/// and by their rows.
#[test]
fn a_server_that_hides_its_timeline_has_leases() {
    use sqlock::ttl::Protocol;
    run(async || {
        let database = sqlock_tests::TestDatabase::create().await;
        let owner = leases(&database.url(), LONG);
        owner.backend().create_table().await.unwrap();
        let mut side = database.connect().await;
        let role = format!("{}_role", database.name());
        execute(
            &mut side,
            &format!(
                "create role \"{role}\" login;
                 grant select, insert, update, delete on sqlock_leases to \"{role}\";
                 grant usage on sequence sqlock_leases_seq to \"{role}\";
                 revoke execute on function pg_walfile_name(pg_lsn) from public"
            ),
        )
        .await;
        for protocol in [Protocol::Simple, Protocol::Prepared] {
            let options = TtlOptions::new().protocol(protocol);
            let backend = options
                .connect_with(database.options().username(&role))
                .unwrap();
            let locks = sqlock::Locks::new(backend);
            let mut last = None;
            for _ in 0..3 {
                let lease = locks.acquire("job").await.unwrap();
                assert!(last < lease.token());
                last = lease.token();
                lease.release().await.unwrap();
            }
            // not of timeline 1, which is told to the owner
            let is_low: bool = ask(
                &mut side,
                "select token < 1::bigint << 51 from sqlock_leases",
            )
            .await;
            assert!(is_low);
            locks.shutdown().await.unwrap();
        }
        let lease = owner.acquire("job").await.unwrap();
        let is_high: bool = ask(
            &mut side,
            "select token > 1::bigint << 51 from sqlock_leases",
        )
        .await;
        assert!(is_high);
        drop(lease);
        owner.shutdown().await.unwrap();
        execute(
            &mut side,
            &format!("drop owned by \"{role}\"; drop role \"{role}\""),
        )
        .await;
    });
}

/// What a sweep keeps holds, too, where neither timeline nor clock is above it: after an upgrade, or
/// a restore, of a server that was promoted before.
#[test]
fn tokens_of_swept_rows_do_not_come_again_on_a_lower_timeline() {
    run(async || {
        let database = sqlock_tests::TestDatabase::create().await;
        let locks = leases(&database.url(), LONG);
        locks.backend().create_table().await.unwrap();
        locks.acquire("job").await.unwrap().release().await.unwrap();
        let mut side = database.connect().await;
        // as timeline 7 would have given
        execute(
            &mut side,
            "update sqlock_leases set token = token + (6::bigint << 51)",
        )
        .await;
        let before: i64 = ask(&mut side, "select token from sqlock_leases").await;
        let swept = locks.backend().sweep(std::time::Duration::ZERO).await;
        assert_eq!(swept.unwrap(), 1);
        for sweep in 0..2 {
            let lease = locks.acquire("job").await.unwrap();
            assert!(token(&lease).get() > before, "after {sweep} more sweeps");
            lease.release().await.unwrap();
            let swept = locks.backend().sweep(std::time::Duration::ZERO).await;
            assert_eq!(swept.unwrap(), 1);
        }
        assert!(locks.backend().leases().await.unwrap().is_empty());
    });
}
