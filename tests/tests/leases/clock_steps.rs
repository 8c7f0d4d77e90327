//! The one case in which two can believe: the server's clock steps forward, which is here that
//! every lease's expiry steps back. Then the token alone decides.

use std::time::Duration;

use sqlock::{Error, FencingToken, Locks, LossCause, ttl::TtlOptions};
use sqlock_tests::TestDatabase;
use sqlx::PgConnection;
use tokio::{
    runtime,
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};

use crate::{
    support::{PATIENCE, execute, run},
    tools::{Lease, TTL, database, node, node_with, options},
};

/// Long enough for everything to happen before the first renewal, at a third of it.
const LONG_TTL: Duration = Duration::from_secs(6);
/// For one who renews nothing.
const SHORT_TTL: Duration = Duration::from_secs(3);
/// The time that it takes to look.
const A_MOMENT: Duration = Duration::from_millis(200);

/// What the leases guard. It takes no write that is older than its last.
struct Resource(PgConnection);

impl Resource {
    async fn create(database: &TestDatabase) -> Self {
        let mut connection = database.connect().await;
        execute(
            &mut connection,
            "create table resource (last_token bigint not null); insert into resource values (0)",
        )
        .await;
        Self(connection)
    }

    async fn takes(&mut self, token: FencingToken) -> bool {
        let done = sqlx::query("update resource set last_token = $1 where last_token <= $1")
            .bind(token.get())
            .execute(&mut self.0)
            .await
            .expect("an update");
        done.rows_affected() == 1
    }
}

async fn step_the_clock(database: &TestDatabase) {
    let mut connection = database.connect().await;
    let step = "update sqlock_leases set expires_at = expires_at - interval '1 h'";
    execute(&mut connection, step).await;
}

/// The older holder cannot know yet, and the newer has done nothing wrong.
async fn two_believe(resource: &mut Resource, older: &Lease, newer: &Lease) {
    let (old, new) = (older.token().unwrap(), newer.token().unwrap());
    assert!(old < new);
    assert!(older.is_valid() && newer.is_valid());
    assert!(resource.takes(old).await, "nobody has written after it");
    assert!(resource.takes(new).await);
    assert!(!resource.takes(old).await);
    assert!(older.is_valid(), "it is the token that decided");
    assert!(resource.takes(new).await);
}

/// A holder who reaches the server learns of it from its next renewal.
#[test]
fn the_older_holder_learns_of_it_when_it_renews() {
    run(async || {
        let database = database().await;
        let mut resource = Resource::create(&database).await;
        let older = node_with(&database, options().ttl(LONG_TTL));
        let older = older.acquire("job").await.unwrap();
        let remaining = older.remaining();
        let stepped = Instant::now();
        step_the_clock(&database).await;
        let newer = node(&database);
        let newer = newer.acquire_within("job", PATIENCE).await.unwrap();
        two_believe(&mut resource, &older, &newer).await;

        let lost = timeout(PATIENCE, older.lost()).await.unwrap();
        assert!(stepped.elapsed() <= remaining, "{:?}", stepped.elapsed());
        let cause = LossCause::TakenOver;
        assert!(
            matches!(&lost, Error::Lost { cause: lost, .. } if *lost == cause),
            "{lost}"
        );
        assert!(!older.is_valid());
        sleep(TTL).await;
        assert!(newer.is_valid(), "and the newer keeps it");
    });
}

/// One who does not believes until its own deadline, and not longer.
#[test]
fn the_older_holder_believes_until_its_own_deadline_at_most() {
    run(async || {
        let database = database().await;
        let mut resource = Resource::create(&database).await;
        // on a runtime that stands still from then on, and renews nothing
        let options = TtlOptions::new().leases(options().ttl(SHORT_TTL));
        let url = database.url();
        let (standing, older) = spawn_blocking(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.unwrap();
            let lease = runtime.block_on(async {
                let locks = Locks::new(options.connect(&url).unwrap());
                locks.acquire("job").await.unwrap()
            });
            (runtime, lease)
        })
        .await
        .unwrap();
        let remaining = older.remaining();
        let stepped = Instant::now();
        step_the_clock(&database).await;
        let newer = node(&database);
        let newer = newer.acquire_within("job", PATIENCE).await.unwrap();
        two_believe(&mut resource, &older, &newer).await;

        while older.is_valid() {
            sleep(Duration::from_millis(10)).await;
        }
        let believed = stepped.elapsed();
        assert!(
            believed + A_MOMENT >= remaining,
            "{believed:?} of {remaining:?}"
        );
        assert!(
            believed <= remaining + PATIENCE / 5,
            "{believed:?} of {remaining:?}"
        );
        assert!(older.check().is_err());
        assert!(newer.is_valid());
        assert!(!resource.takes(older.token().unwrap()).await);
        standing.shutdown_background();
    });
}
