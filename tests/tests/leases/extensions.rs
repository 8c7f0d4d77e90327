//! Other TTLs than the one with which a lease began.

use std::time::Duration;

use sqlock::Error;
use sqlock_tests::eventually;
use tokio::time::{sleep, timeout};

use crate::{
    support::{PATIENCE, ask, execute},
    tools::{TTL, options, seconds_left},
    world::everywhere,
};

/// Longer, and then again shorter.
#[test]
fn an_extension_holds_for_the_renewals_after_it() {
    everywhere(async |world| {
        let mut lease = world.node().acquire("job").await.unwrap();
        let mut connection = world.connect().await;
        lease.extend(Duration::from_secs(60)).await.unwrap();
        assert!(seconds_left(&mut connection, "job").await > 50.0);
        assert!(lease.remaining() > Duration::from_secs(50));
        lease.extend(TTL).await.unwrap();
        assert!(lease.remaining() <= TTL);
        sleep(TTL * 2).await;
        assert!(lease.is_valid());
        let error = lease.extend(Duration::ZERO).await.unwrap_err();
        assert!(
            matches!(error, Error::InvalidOption { option: "ttl", .. }),
            "{error}"
        );
    });
}

/// Commits that take longer than they are waited for, so that each happens and its answer is lost.
const LOSE_ANSWERS: &str = "
    create sequence commits;
    create function commit_slowly() returns trigger language plpgsql as
      $$ begin perform pg_sleep(1.2), nextval('public.commits'); return null; end $$;
    create constraint trigger slow after update on sqlock_leases
      deferrable initially deferred for each row execute function commit_slowly()";

/// A renewal never shortens the row: the holder, who may not know of it, believes in the longer
/// time for as long as the answer is lost.
#[test]
fn a_shorter_extension_whose_answer_is_lost_shortens_nothing() {
    everywhere(async |world| {
        let leases = options()
            .ttl(Duration::from_secs(60))
            .statement_limit(Duration::from_millis(600));
        let mut lease = world.node_with(leases).acquire("job").await.unwrap();
        let mut connection = world.connect().await;
        execute(&mut connection, LOSE_ANSWERS).await;
        let extension = lease.extend(Duration::from_secs(3));
        let answer = timeout(Duration::from_secs(2), extension).await;
        assert!(answer.is_err(), "{answer:?}");
        eventually(PATIENCE, async || {
            ask(&mut connection, "select is_called from commits").await
        })
        .await;
        assert!(lease.remaining() > Duration::from_secs(30));
        let left = seconds_left(&mut connection, "job").await;
        assert!(left >= lease.remaining().as_secs_f64(), "{left} s are left");

        // and once answers come again, it is as short as it was asked to be
        execute(&mut connection, "drop trigger slow on sqlock_leases").await;
        lease.extend(Duration::from_secs(3)).await.unwrap();
        assert!(lease.remaining() <= Duration::from_secs(3));
    });
}
