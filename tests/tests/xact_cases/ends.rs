//! Guards that end where nobody would expect it: outside of a runtime, in a panic, with the runtime,
//! with the thread.

use std::{cell::RefCell, thread};

use sqlock::{Locks, XactBackend};
use tokio::runtime::{Builder, Runtime};

use crate::{
    support::{PATIENCE, within},
    world::{Guard, World, both_ways, insert, on},
};

fn another_runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// A guard of another runtime, with work in it.
fn elsewhere(world: &World) -> (Runtime, Locks<XactBackend>, Guard) {
    let options = world.pool(2);
    thread::scope(|scope| {
        let made = scope.spawn(|| {
            let runtime = another_runtime();
            let (locks, guard) = runtime.block_on(async {
                let locks = on(options);
                let mut guard = locks.acquire("k").await.unwrap();
                insert(&mut guard, 1).await;
                (locks, guard)
            });
            (runtime, locks, guard)
        });
        made.join().unwrap()
    })
}

async fn is_rolled_back(world: &World) {
    world.is_clean().await;
    world.has_work(&[]).await;
    let again = world.locks();
    let guard = within(PATIENCE, "the lock", again.acquire("k")).await;
    guard.unwrap().release().await.unwrap();
}

#[test]
fn a_drop_needs_no_runtime() {
    both_ways(async |world| {
        let (runtime, _locks, guard) = elsewhere(&world);
        thread::spawn(move || drop(guard)).join().unwrap();
        is_rolled_back(&world).await;
        runtime.shutdown_background();
    });
}

#[test]
fn a_guard_that_outlives_its_runtime() {
    both_ways(async |world| {
        let (runtime, locks, guard) = elsewhere(&world);
        runtime.shutdown_background();
        thread::spawn(move || drop(guard)).join().unwrap();
        is_rolled_back(&world).await;
        // nor does what is left of it harm this runtime
        drop(locks);
    });
}

#[test]
fn a_guard_that_goes_with_its_runtime() {
    both_ways(async |world| {
        let (runtime, _locks, guard) = elsewhere(&world);
        runtime.spawn(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        runtime.shutdown_background();
        is_rolled_back(&world).await;
    });
}

/// A runtime of one thread, dropped with a guard in a task, and one that ends at that moment.
#[test]
fn a_runtime_of_one_thread_that_goes() {
    both_ways(async |world| {
        let pool = world.pool(4);
        let work = move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let locks = on(pool);
                let mut guard = locks.acquire("k").await.unwrap();
                insert(&mut guard, 1).await;
                let other = locks.acquire("other").await.unwrap();
                tokio::spawn(async move {
                    let _guard = guard;
                    std::future::pending::<()>().await;
                });
                tokio::task::yield_now().await;
                drop(other);
            });
        };
        thread::spawn(work).join().unwrap();
        is_rolled_back(&world).await;
    });
}

#[test]
fn a_panic_rolls_back() {
    both_ways(async |world| {
        let locks = world.locks();
        let mut guard = locks.acquire("k").await.unwrap();
        insert(&mut guard, 1).await;
        let panicking = tokio::spawn(async move {
            let _guard = guard;
            tokio::task::yield_now().await;
            std::panic::resume_unwind(Box::new("the work panics"))
        });
        let outcome: Result<(), _> = panicking.await;
        assert!(outcome.unwrap_err().is_panic());
        is_rolled_back(&world).await;
    });
}

thread_local! {
    static KEPT: RefCell<Option<Guard>> = const { RefCell::new(None) };
}

/// The thread's runtime context is gone by the time that its thread-locals are dropped.
#[test]
fn a_guard_in_a_thread_local() {
    both_ways(async |world| {
        for touches_tokio_first in [0, 1] {
            let (runtime, _locks, guard) = elsewhere(&world);
            let handle = runtime.handle().clone();
            let keep = move || {
                if touches_tokio_first == 1 {
                    drop(handle.enter());
                }
                KEPT.with(|kept| kept.replace(Some(guard)));
                drop(handle.enter());
            };
            thread::spawn(keep).join().unwrap();
            is_rolled_back(&world).await;
            runtime.shutdown_background();
        }
    });
}
