//! Call sites that must compile: generic, erased, boxed and spawned.

use std::{future::Future, pin::Pin, sync::Arc};

use sqlock::{DynBackend, Error, Held, LockBackend, LockGuard, Locks, Lost, MemoryBackend, Result};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Backends stay a parameter, and the futures are still `Send`.
fn spawned<B: LockBackend>(locks: &Locks<B>) {
    let once = locks.clone();
    tokio::spawn(async move { once.run_once("k", async |lock| lock.check()).await });
    let held = locks.clone();
    tokio::spawn(async move {
        let guard = held.acquire("k").await?;
        guard.protect(std::future::ready(())).await?;
        guard.release().await
    });
    let named = locks.clone();
    tokio::spawn(async move { named.run_once("k", body).await });
}

async fn body<H: Held>(guard: &mut LockGuard<H>) -> Result<usize> {
    guard.check()?;
    Ok(guard.keys().len())
}

fn boxed<'a>(locks: &'a Locks<DynBackend>, name: &'a str) -> BoxFuture<'a, Result<Option<usize>>> {
    Box::pin(async move {
        locks
            .run_once(name, async |_| Ok::<_, Error>(name.len()))
            .await
    })
}

type Job = Arc<dyn Fn(Lost) -> BoxFuture<'static, Result<()>> + Send + Sync>;

fn scheduled<B: LockBackend>(locks: Locks<B>, job: Job) -> BoxFuture<'static, Result<Option<()>>> {
    Box::pin(async move {
        locks
            .run_once("job", async |lock| job(lock.lost()).await)
            .await
    })
}

async fn captures<B: LockBackend>(locks: &Locks<B>) -> Result<u32> {
    let mut count = 0;
    locks
        .with_lock("k", async |_| {
            count += 1;
            Ok::<_, Error>(())
        })
        .await?;
    Ok(count)
}

#[tokio::test]
async fn every_shape_compiles_and_runs() {
    let backend = MemoryBackend::new();
    let locks = Locks::new(backend.another_node());
    let erased = Locks::new(backend).erased();
    spawned(&locks);
    spawned(&erased);
    assert_eq!(boxed(&erased, "four").await.unwrap(), Some(4));
    let job: Job = Arc::new(|lost| Box::pin(async move { lost.check() }));
    assert_eq!(scheduled(locks.clone(), job).await.unwrap(), Some(()));
    assert_eq!(captures(&locks).await.unwrap(), 1);
    assert_eq!(captures(&erased).await.unwrap(), 1);
}
