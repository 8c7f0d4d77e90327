//! Who holds a lock. Capability `inspect`.

use sqlock_core::{Error, InspectBackend, LockKey, Mode};

use crate::{Harness, World};

/// Nobody, then one, then nobody again; asked by the holder's node and by another.
pub async fn the_holder_is_shown<H: Harness<Backend: InspectBackend>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    assert_eq!(other.inspect("k").await.unwrap(), []);
    let guard = one.acquire("k").await.unwrap();
    for locks in [&one, &other] {
        let holders = locks.inspect("k").await.unwrap();
        assert_eq!(holders.len(), 1, "{holders:?}");
        assert_eq!(holders[0].mode, Mode::Exclusive);
        assert_eq!(locks.inspect("another").await.unwrap(), []);
    }
    guard.release().await.unwrap();
    assert_eq!(other.inspect("k").await.unwrap(), []);
}

/// Numbers, pairs and keys with a namespace can be asked for too.
pub async fn any_key_can_be_asked_for<H: Harness<Backend: InspectBackend>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let keys = [
        LockKey::from_id(-42),
        LockKey::from_pair(-7, 42).unwrap(),
        LockKey::in_namespace("billing", "job").unwrap(),
    ];
    for key in &keys {
        let guard = one.acquire(key).await.unwrap();
        for asked in &keys {
            let holders = other.inspect(asked).await.unwrap();
            assert_eq!(
                holders.len(),
                usize::from(asked == key),
                "{asked:?} of {key:?}"
            );
        }
        guard.release().await.unwrap();
    }
    assert!(matches!(one.inspect("").await, Err(Error::InvalidKey(_))));
}

/// Who waits is not a holder.
pub async fn waiters_are_not_holders<H: Harness<Backend: InspectBackend>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire("k").await.unwrap();
    let waiter = tokio::spawn(other.lock("k").acquire());
    tokio::time::sleep(crate::support::A_MOMENT).await;
    assert_eq!(one.inspect("k").await.unwrap().len(), 1);
    waiter.abort();
    assert!(waiter.await.is_err());
    guard.release().await.unwrap();
}
