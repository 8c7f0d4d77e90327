//! Work that runs under a lock.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sqlock_core::{Error, LockBackend, Locks};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Harness, World,
    support::{A_MOMENT, join_all, within},
};

/// `run_once` gives what the body gives, or `None` where another has the lock.
pub async fn run_once_runs_where_the_lock_is_free<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let done = one.run_once("k", async |lock| {
        assert_eq!(lock.key().name(), Some("k"));
        world.until_held(1).await;
        let again = other.run_once("k", async |_| Ok::<_, Error>(8)).await?;
        assert_eq!(again, None);
        Ok::<_, Error>(7)
    });
    assert_eq!(done.await.unwrap(), Some(7));
    // released when it returns, and not soon after
    let done = other.run_once("k", async |_| Ok::<_, Error>(9)).await;
    assert_eq!(done.unwrap(), Some(9));
}

/// Of many nodes that race for it, one runs it at a time; those who miss it do not wait.
pub async fn run_once_runs_once<H: Harness>(world: World<H>) {
    let nodes = [world.node().await, world.node().await];
    let mut tasks = JoinSet::new();
    let barrier = Arc::new(tokio::sync::Barrier::new(20));
    for task in 0..20 {
        let (locks, barrier) = (nodes[task % 2].clone(), Arc::clone(&barrier));
        tasks.spawn(async move {
            barrier.wait().await;
            let run = locks.run_once("k", async |_| {
                // until all others have been refused
                barrier.wait().await;
                Ok::<_, Error>(())
            });
            let ran = run.await.unwrap().is_some();
            if !ran {
                barrier.wait().await;
            }
            ran
        });
    }
    let ran = join_all(tasks).await;
    assert_eq!(ran.into_iter().filter(|ran| *ran).count(), 1);
}

/// `with_lock` waits, and gives what the body gives.
pub async fn with_lock_waits<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let guard = one.acquire("k").await.unwrap();
    let waiting = other.lock("k");
    let waiter = tokio::spawn(waiting.with_lock(async |_| Ok::<_, Error>(7)));
    sleep(A_MOMENT).await;
    assert!(!waiter.is_finished());
    guard.release().await.unwrap();
    let done = within(H::PATIENCE, "the body's turn", waiter)
        .await
        .unwrap();
    assert_eq!(done.unwrap(), 7);
    assert!(one.try_acquire("k").await.unwrap().is_some());
}

/// The body's error comes out as it is, and the lock is free.
pub async fn an_error_of_the_body_frees_the_lock<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let failed = one.run_once("k", async |_| Err::<(), _>(Failure::Work));
    assert!(matches!(failed.await, Err(Failure::Work)));
    let guard = other.try_acquire("k").await.unwrap();
    guard
        .expect("free when it returns")
        .release()
        .await
        .unwrap();

    let failed = one.with_lock("k", async |_| Err::<(), _>(Failure::Work));
    assert!(matches!(failed.await, Err(Failure::Work)));
    let refused = one.with_lock("", async |_| Ok::<_, Failure>(())).await;
    assert!(matches!(refused, Err(Failure::Lock(Error::InvalidKey(_)))));
    let guard = other.try_acquire("k").await.unwrap();
    guard
        .expect("free when it returns")
        .release()
        .await
        .unwrap();
}

/// A panic of the body goes on, and the lock is free.
pub async fn a_panic_of_the_body_frees_the_lock<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let task = tokio::spawn(async move {
        let body = one.run_once("k", async |_| -> Result<(), Error> {
            tokio::task::yield_now().await;
            std::panic::resume_unwind(Box::new("the body panics"))
        });
        body.await
    });
    assert!(task.await.unwrap_err().is_panic());
    let guard = world.take(&other, "k", "a body's panic holds").await;
    guard.release().await.unwrap();
}

/// A body can use what is around it, and the guard.
pub async fn a_body_borrows_what_is_around_it<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    let mut runs = 0;
    let name = String::from("k");
    for _ in 0..3 {
        let body = locks.with_lock(name.as_str(), async |lock| {
            let key = lock.protect(async { name.len() }).await?;
            runs += key;
            Ok::<_, Failure>(())
        });
        body.await.unwrap();
    }
    assert_eq!(runs, 3);
}

/// A body that is aborted is dropped before the lock is free.
pub async fn an_aborted_body_is_over_when_the_lock_is_free<H: Harness>(world: World<H>) {
    struct Running(Arc<AtomicBool>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.store(false, Ordering::SeqCst);
        }
    }
    let (one, other) = world.two_nodes().await;
    for _ in 0..10 {
        let running = Arc::new(AtomicBool::new(true));
        let run = Running(Arc::clone(&running));
        let waiting = one.lock("k");
        let task = tokio::spawn(waiting.with_lock(async move |_| {
            let _run = run;
            std::future::pending::<Result<(), Error>>().await
        }));
        world.until_held(1).await;
        let next = other.lock("k");
        let next = tokio::spawn(async move {
            let guard = next.await.unwrap();
            assert!(!running.load(Ordering::SeqCst), "the body still runs");
            guard.release().await.unwrap();
        });
        task.abort();
        within(H::PATIENCE, "the next one's turn", next)
            .await
            .unwrap();
        assert!(task.await.unwrap_err().is_cancelled());
    }
}

/// `run_once` of a backend that is chosen at run time, inside `spawn`.
pub async fn an_erased_backend_runs_in_a_spawned_task<H: Harness>(world: World<H>) {
    let erased = world.node().await.erased();
    let other = world.node().await;
    let spawned = tokio::spawn(async move {
        let done = erased.run_once("k", async |lock| {
            lock.check()?;
            assert!(erased.try_acquire("k").await?.is_none());
            Ok::<_, Error>(lock.keys().len())
        });
        let done = done.await?;
        let guard = erased.acquire("k").await?;
        guard.protect(async {}).await?;
        drop(guard);
        Ok::<_, Error>(done)
    });
    assert_eq!(spawned.await.unwrap().unwrap(), Some(1));
    let guard = world.take(&other, "k", "an erased guard was dropped").await;
    guard.release().await.unwrap();
}

/// The same in a function that is generic over the backend.
pub async fn a_generic_function_spawns<H: Harness>(world: World<H>) {
    fn spawned<B: LockBackend>(locks: Locks<B>) -> tokio::task::JoinHandle<Result<usize, Error>> {
        tokio::spawn(async move {
            let name = String::from("k");
            let mut runs = 0;
            locks
                .with_lock(&name, async |lock| {
                    lock.check()?;
                    runs += name.len();
                    Ok::<_, Error>(())
                })
                .await?;
            let guard = locks.acquire("k").await?;
            guard.protect(std::future::ready(())).await?;
            guard.release().await?;
            Ok(runs)
        })
    }
    let locks = world.node().await;
    assert_eq!(spawned(locks.clone()).await.unwrap().unwrap(), 1);
    assert_eq!(spawned(locks.erased()).await.unwrap().unwrap(), 1);
}

#[derive(Debug)]
enum Failure {
    Work,
    Lock(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}
