//! Keys are PostgreSQL's advisory ids.

use sqlock_core::{AdvisoryId, LockBackend, LockKey, Locks};

use crate::{Harness, World};

/// The number that SQL computes of a name is the same lock as the name.
pub async fn a_name_and_its_number_are_one_lock<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for name in ["daily-report", "plumless", "ロック"] {
        let named = LockKey::new(name).unwrap();
        let AdvisoryId::Bigint(id) = named.id() else {
            panic!("{name} is not a bigint");
        };
        let numbered = LockKey::from_id(id);
        assert!(contend(&one, &other, [&named, &numbered]).await, "{name}");
        assert!(contend(&other, &one, [&numbered, &named]).await, "{name}");
        assert!(contend(&one, &one, [&named, &numbered]).await, "{name}");
    }
}

/// `pg_advisory_lock(bigint)` and `pg_advisory_lock(int, int)` never meet, although the server
/// keeps both as two numbers of 32 bits.
pub async fn numbers_and_pairs_are_apart<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let number = LockKey::from_id((7 << 32) | 42);
    let pair = LockKey::from_pair(7, 42).unwrap();
    let reversed = LockKey::from_pair(42, 7).unwrap();
    assert!(!contend(&one, &other, [&number, &pair]).await);
    assert!(!contend(&one, &other, [&pair, &number]).await);
    assert!(!contend(&one, &other, [&pair, &reversed]).await);
    assert!(contend(&one, &other, [&pair, &pair]).await);
    assert!(contend(&one, &one, [&pair, &pair]).await);
}

/// Both ends of both spaces, and numbers that share one half.
pub async fn extreme_numbers_are_locks_of_their_own<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let mut keys = [i64::MIN, i64::MIN + 1, -1, 0, 1, 1 << 32, i64::MAX]
        .map(LockKey::from_id)
        .to_vec();
    let pairs = [
        (i32::MIN, i32::MIN),
        (i32::MIN, i32::MAX),
        (-1, 0),
        (0, -1),
        (0, 0),
    ];
    keys.extend(pairs.map(|(class, object)| LockKey::from_pair(class, object).unwrap()));

    let mut guards = Vec::new();
    for key in &keys {
        let guard = one.try_acquire(key).await.unwrap();
        guards.push(guard.unwrap_or_else(|| panic!("{key:?} is another's lock")));
    }
    world.until_held(keys.len()).await;
    for key in &keys {
        assert!(other.try_acquire(key).await.unwrap().is_none(), "{key:?}");
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
}

/// A name and its number in one request are one lock, taken once.
pub async fn a_name_and_its_number_are_taken_once<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    let named = LockKey::new("daily-report").unwrap();
    let numbered = LockKey::from_id(2_067_039_765_893_743_488);
    let guard = locks.acquire_all([&named, &numbered]).await.unwrap();
    assert_eq!(guard.keys().len(), 1);
    world.until_held(1).await;
    guard.release().await.unwrap();
    assert!(locks.try_acquire(named).await.unwrap().is_some());
}

/// Whether two keys are one lock.
async fn contend<B: LockBackend>(
    one: &Locks<B>,
    other: &Locks<B>,
    [first, second]: [&LockKey; 2],
) -> bool {
    let guard = one.acquire(first).await.unwrap();
    let second = other.try_acquire(second).await.unwrap();
    let contended = second.is_none();
    if let Some(second) = second {
        second.release().await.unwrap();
    }
    guard.release().await.unwrap();
    contended
}
