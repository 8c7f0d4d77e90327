//! A role's `search_path` that puts somebody's functions and operators before the server's own.

use std::time::Duration;

use sqlock::{
    Error, LossCause,
    xact::{LockIn, lock_in, try_lock_all_in, try_lock_in, try_lock_shared_in},
};

use crate::{
    support::{PATIENCE, execute, put_decoys_first, within},
    world::{both_ways, insert},
};

/// None of them is called, whatever a guard is used for; and what it says is true.
#[test]
fn a_guard_calls_none() {
    both_ways(async |world| {
        put_decoys_first(&world.database).await;
        let (one, other) = (world.locks(), world.locks());
        let mut guard = one.acquire("k").await.unwrap();
        assert!(other.try_acquire("k").await.unwrap().is_none());
        assert_eq!(other.inspect("k").await.unwrap().len(), 1);
        guard.held_mut().probe().await.unwrap();
        let waiting = other.lock("k").within(PATIENCE);
        let waiter = tokio::spawn(async move { waiting.await?.roll_back().await });
        insert(&mut guard, 1).await;
        guard.commit().await.unwrap();
        within(PATIENCE, "the waiter", waiter)
            .await
            .unwrap()
            .unwrap();
        let reader = one.lock(7).shared().acquire().await.unwrap();
        let beside = other.lock(7).shared().acquire().await.unwrap();
        drop((reader, beside));

        // ended by other SQL
        let mut guard = one.acquire("k").await.unwrap();
        execute(guard.connection(), "commit; begin").await;
        let error = guard.commit().await.unwrap_err();
        let cause = LossCause::TransactionEnded;
        assert!(matches!(&error, Error::Lost { cause: found, .. } if *found == cause));
        world.has_work(&[1]).await;
        world.is_clean().await;
    });
}

#[test]
fn locks_in_a_transaction_of_ones_own_call_none() {
    both_ways(async |world| {
        put_decoys_first(&world.database).await;
        let holder = world.locks().acquire("k").await.unwrap();
        let pool = world.pool(1);
        let mut transaction = pool.begin().await.unwrap();
        let wait = Duration::from_millis(50);
        assert!(!try_lock_in(&mut transaction, "k").await.unwrap());
        assert!(!try_lock_shared_in(&mut transaction, "k").await.unwrap());
        assert!(try_lock_all_in(&mut transaction, [1, 2]).await.unwrap());
        let error = lock_in(&mut transaction, "k", wait).await.unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
        holder.release().await.unwrap();
        let keys = ["k", "l", "m"];
        let any = LockIn::new().at_any_isolation();
        any.lock(&mut transaction, keys, PATIENCE).await.unwrap();
        assert!(world.locks().try_acquire("l").await.unwrap().is_none());
        transaction.commit().await.unwrap();
        world.is_clean().await;
    });
}
