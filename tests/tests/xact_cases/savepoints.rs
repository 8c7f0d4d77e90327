//! Case 38: savepoints of the application's, before a lock and after it.

use std::time::Duration;

use sqlock::xact::{lock_all_in, lock_in, try_lock_in};
use sqlx::Connection as _;
use tokio::time::sleep;

use crate::{
    support::{PATIENCE, execute},
    world::{World, both_ways, fails},
};

/// Whether another may have the lock.
async fn is_free(world: &World, key: i64) -> bool {
    let mut other = world.pool(1).begin().await.unwrap();
    let free = try_lock_in(&mut other, key).await.unwrap();
    other.rollback().await.unwrap();
    free
}

/// Going back to a savepoint of before the lock frees it; of after the lock, it does not.
#[test]
fn going_back_to_before_the_lock_frees_it() {
    both_ways(async |world| {
        let mut transaction = world.pool(1).begin().await.unwrap();
        execute(&mut transaction, "savepoint before").await;
        lock_in(&mut transaction, 1, PATIENCE).await.unwrap();
        lock_all_in(&mut transaction, [2, 3], PATIENCE)
            .await
            .unwrap();
        execute(&mut transaction, "savepoint after").await;
        execute(&mut transaction, "insert into work values (1)").await;

        execute(&mut transaction, "rollback to savepoint after").await;
        for key in 1..=3 {
            assert!(!is_free(&world, key).await, "{key}");
        }
        fails(&mut transaction, "select 1/0").await;
        execute(&mut transaction, "rollback to savepoint after").await;
        assert!(!is_free(&world, 1).await);

        execute(&mut transaction, "rollback to savepoint before").await;
        for key in 1..=3 {
            assert!(is_free(&world, key).await, "{key}");
        }
        lock_in(&mut transaction, 1, PATIENCE).await.unwrap();
        execute(&mut transaction, "release savepoint before").await;
        assert!(!is_free(&world, 1).await);
        transaction.commit().await.unwrap();
        world.is_clean().await;
    });
}

/// The same of one that was waited for, whose own savepoint is gone by then.
#[test]
fn a_lock_that_was_waited_for() {
    both_ways(async |world| {
        let guard = world.locks().acquire(1).await.unwrap();
        let mut transaction = world.pool(1).begin().await.unwrap();
        execute(&mut transaction, "savepoint before").await;
        let (waited, ()) = tokio::join!(lock_in(&mut transaction, 1, PATIENCE), async {
            sleep(Duration::from_millis(50)).await;
            guard.release().await.unwrap();
        });
        waited.unwrap();
        execute(
            &mut transaction,
            "savepoint after; rollback to savepoint after",
        )
        .await;
        assert!(!is_free(&world, 1).await);
        execute(&mut transaction, "rollback to savepoint before").await;
        assert!(is_free(&world, 1).await);
        transaction.commit().await.unwrap();
        world.is_clean().await;
    });
}

/// A nested transaction of sqlx's is a savepoint, too.
#[test]
fn a_nested_transaction() {
    both_ways(async |world| {
        let mut transaction = world.pool(1).begin().await.unwrap();
        let mut nested = transaction.begin().await.unwrap();
        assert!(try_lock_in(&mut nested, 1).await.unwrap());
        nested.rollback().await.unwrap();
        assert!(is_free(&world, 1).await);

        let mut nested = transaction.begin().await.unwrap();
        assert!(try_lock_in(&mut nested, 1).await.unwrap());
        nested.commit().await.unwrap();
        assert!(!is_free(&world, 1).await);
        transaction.commit().await.unwrap();
        world.is_clean().await;
    });
}

/// The lock of a guard comes before all savepoints in it: none of them frees it.
#[test]
fn a_guard_outlasts_its_savepoints() {
    both_ways(async |world| {
        let mut guard = world.locks().acquire(1).await.unwrap();
        execute(guard.connection(), "savepoint s").await;
        fails(guard.connection(), "select 1/0").await;
        execute(guard.connection(), "rollback to savepoint s").await;
        assert!(!is_free(&world, 1).await);
        guard.held_mut().probe().await.unwrap();
        guard.commit().await.unwrap();
        world.is_clean().await;
    });
}
