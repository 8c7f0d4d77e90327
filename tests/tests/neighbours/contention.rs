use sqlock::{AdvisoryId, LockKey, Locks, Mode, SessionBackend, SharedBackend, XactBackend};
use sqlock_tests::{TestDatabase, eventually, holds_within};

use sqlx::PgPool;

use crate::{
    Neighbour,
    support::{PATIENCE, ids_held, within},
};

/// Theirs excludes ours, and ours theirs, on each backend that has advisory locks.
pub(crate) async fn contend(
    database: &TestDatabase,
    theirs: &mut impl Neighbour,
    name: &str,
    key: &LockKey,
    modes: &[Mode],
) {
    let session = Locks::new(SessionBackend::connect(&database.url()).await.unwrap());
    let xact = Locks::new(XactBackend::new(PgPool::connect_lazy_with(
        database.options(),
    )));
    for &mode in modes {
        exclude_each_other(database, &session, theirs, name, key, mode).await;
        exclude_each_other(database, &xact, theirs, name, key, mode).await;
    }
    if modes.contains(&Mode::Shared) {
        share(&session, theirs, name, key).await;
        share(&xact, theirs, name, key).await;
    }
    session.shutdown().await.unwrap();
    xact.shutdown().await.unwrap();
}

async fn exclude_each_other<B: SharedBackend>(
    database: &TestDatabase,
    locks: &Locks<B>,
    theirs: &mut impl Neighbour,
    name: &str,
    key: &LockKey,
    mode: Mode,
) {
    let what = format!("{}, {name}, theirs {mode:?}", locks.backend().name());

    // theirs holds, under the number that we computed
    assert!(theirs.try_acquire(name, mode).await, "{what}");
    let mut held = Vec::new();
    holds_within(PATIENCE, async || {
        held = ids_held(database).await;
        held.len() == 1 // a look of ours at the server may be about to end
    })
    .await;
    let held: Vec<_> = held.into_iter().map(AdvisoryId::Bigint).collect();
    assert_eq!(held, [key.id()], "{what}");
    assert!(locks.try_acquire(key).await.unwrap().is_none(), "{what}");

    // theirs is released: one of ours that waits gets it
    let waiting = tokio::spawn(locks.lock(key).within(PATIENCE).acquire());
    theirs.release().await;
    let guard = waiting.await.unwrap().expect(&what);

    // ours holds: one of theirs that tries is refused, and one that waits is granted at the release
    assert!(!theirs.try_acquire(name, mode).await, "{what}");
    theirs.begin_to_wait(name, mode).await;
    eventually(PATIENCE, async || {
        let locks = database.advisory_locks().await;
        locks.iter().any(|lock| !lock.granted)
    })
    .await;
    guard.release().await.unwrap();
    within(PATIENCE, &what, theirs.granted()).await;
    theirs.release().await;
}

async fn share<B: SharedBackend>(
    locks: &Locks<B>,
    theirs: &mut impl Neighbour,
    name: &str,
    key: &LockKey,
) {
    let shared = locks.lock(key).shared();
    let guard = shared.try_acquire().await.unwrap().expect("a free lock");
    assert!(theirs.try_acquire(name, Mode::Shared).await, "{name}");
    assert!(locks.try_acquire(key).await.unwrap().is_none(), "{name}");
    guard.release().await.unwrap();
    theirs.release().await;
}
