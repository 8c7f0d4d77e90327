//! Cases 35 and 39: locks in opposite orders.

use std::time::Duration;

use rand::seq::SliceRandom;
use sqlock::{
    Error,
    xact::{lock_all_in, lock_in},
};
use sqlx::{Postgres, Transaction};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    support::{PATIENCE, execute, within},
    world::{World, both_ways},
};

async fn begin(world: &World) -> Transaction<'static, Postgres> {
    let mut transaction = world.pool(1).begin().await.unwrap();
    let soon = "set local deadlock_timeout = '100ms'";
    execute(&mut transaction, soon).await;
    transaction
}

/// Case 35: a row and a lock. One of the two is the victim, and told so; its transaction goes on, with
/// its row lock in the other's way, until it is rolled back; then the other is served.
#[test]
fn a_row_and_a_lock_in_opposite_orders() {
    both_ways(async |world| {
        let mut setup = world.database.connect().await;
        execute(&mut setup, "insert into work values (1)").await;
        let mut one = begin(&world).await;
        // so that the victim is known: the other notices late
        let mut other = world.pool(1).begin().await.unwrap();
        execute(&mut other, "set local deadlock_timeout = '1min'").await;

        let row = "update work set n = n where n = 1";
        execute(&mut one, row).await;
        lock_in(&mut other, 1, PATIENCE).await.unwrap();
        let blocked = tokio::spawn(async move {
            execute(&mut other, row).await;
            other
        });
        sleep(Duration::from_millis(100)).await;
        let error = lock_in(&mut one, 1, PATIENCE).await.unwrap_err();
        assert!(matches!(error, Error::Deadlock { .. }), "{error:?}");
        assert!(error.is_retryable());

        // the transaction goes on, and the other one waits for it
        execute(&mut one, "insert into work values (2)").await;
        sleep(Duration::from_millis(100)).await;
        assert!(!blocked.is_finished());
        one.rollback().await.unwrap();
        let other = within(PATIENCE, "the other one's turn", blocked)
            .await
            .unwrap();
        other.commit().await.unwrap();
        world.has_work(&[1]).await;

        // begun anew, it has its lock
        let mut one = begin(&world).await;
        lock_in(&mut one, 1, PATIENCE).await.unwrap();
        execute(&mut one, row).await;
        one.commit().await.unwrap();
        world.is_clean().await;
    });
}

/// A budget that ends before the server looks for deadlocks is a timeout.
#[test]
fn a_short_budget_comes_before_the_deadlock() {
    both_ways(async |world| {
        let mut one = world.pool(1).begin().await.unwrap();
        let mut other = world.pool(1).begin().await.unwrap();
        lock_in(&mut one, 1, PATIENCE).await.unwrap();
        lock_in(&mut other, 2, PATIENCE).await.unwrap();
        let brief = Duration::from_millis(200);
        let (one_s, other_s) = tokio::join!(
            lock_in(&mut one, 2, brief),
            lock_in(&mut other, 1, brief * 2)
        );
        assert!(matches!(one_s, Err(Error::Timeout { .. })), "{one_s:?}");
        assert!(matches!(other_s, Err(Error::Timeout { .. })), "{other_s:?}");
        drop((one, other));
        world.is_clean().await;
    });
}

/// Case 39: whoever names the same keys in one call cannot deadlock, in whatever order.
#[test]
fn several_keys_in_any_order_never_deadlock() {
    both_ways(async |world| {
        let pool = world.pool(8);
        let locks = crate::world::on(world.pool(4));
        let mut tasks = JoinSet::new();
        for n in 0..12 {
            let (pool, locks) = (pool.clone(), locks.clone());
            tasks.spawn(async move {
                let mut keys: Vec<String> = (0..6).map(|key| format!("key {key}")).collect();
                for _ in 0..15 {
                    keys.shuffle(&mut rand::rng());
                    let some: Vec<&str> = keys.iter().take(3).map(String::as_str).collect();
                    if n % 3 == 0 {
                        let guard = locks.acquire_all(some).await.unwrap();
                        guard.release().await.unwrap();
                    } else {
                        let mut transaction = pool.begin().await.unwrap();
                        execute(&mut transaction, "set local deadlock_timeout = '50ms'").await;
                        lock_all_in(&mut transaction, some, PATIENCE).await.unwrap();
                        transaction.commit().await.unwrap();
                    }
                }
            });
        }
        within(3 * PATIENCE, "all of them", tasks.join_all()).await;
        world.is_clean().await;
    });
}
