//! What users write, as far as the compiler is concerned: this file has to compile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use sqlock_core::{
    BoxHeld, Deadline, DynBackend, DynSharedBackend, DynTellsLoss, DynWritersFirst, Error,
    FencingToken, Held, Holder, LockBackend, LockGuard, LockKey, Locks, LocksBuilder, Lost,
    LostSender, MemoryBackend, ReadGuard, ReadWrite, Request, Result, Semaphore, Wait, WriteGuard,
    memory::MemoryHeld,
};

fn shared<T: Send + Sync + 'static>() {}
fn send<T: Send>(_: &T) {}

#[test]
fn types_can_be_shared_between_threads() {
    shared::<Locks<MemoryBackend>>();
    shared::<LocksBuilder<MemoryBackend>>();
    shared::<LockGuard<MemoryHeld>>();
    shared::<LockGuard<BoxHeld>>();
    shared::<(DynBackend, DynSharedBackend, Locks<DynBackend>)>();
    shared::<(DynTellsLoss, DynWritersFirst)>();
    shared::<(Lost, LostSender, Request, Deadline, Wait)>();
    shared::<(LockKey, Error, FencingToken, Holder)>();
    shared::<(Semaphore<MemoryBackend>, ReadWrite<MemoryBackend>)>();
    shared::<(ReadGuard<MemoryHeld>, WriteGuard<MemoryHeld>)>();
}

#[tokio::test]
async fn futures_can_be_spawned() {
    let locks = Locks::new(MemoryBackend::new());
    send(&locks.try_acquire("k"));
    send(&locks.acquire("k"));
    send(&locks.acquire_within("k", Duration::ZERO));
    send(&locks.acquire_all(["k"]));
    send(&locks.lock("k").shared().into_future());
    send(&locks.run_once("k", async |_| Ok::<_, Error>(())));
    send(&locks.with_lock("k", async |_| Ok::<_, Error>(())));
    send(&locks.inspect("k"));
    let read_write = locks.read_write("k").unwrap();
    send(&read_write.read());
    send(&read_write.try_write());
    let semaphore = locks.semaphore("k", 2).unwrap();
    send(&semaphore.try_acquire());
    send(&semaphore.acquire());
    send(&semaphore.acquire_within(Duration::ZERO));
    send(&semaphore.with_permit(async |_| Ok::<_, Error>(())));
    send(&locks.shutdown());
    let guard = locks.acquire("k").await.unwrap();
    send(&guard.protect(async {}));
    send(&guard.lost().wait());
    send(&guard.lost().into_future());
    send(&guard.release());
}

/// An error type of the user's, made from ours.
#[derive(Debug)]
struct ReportError;

impl From<Error> for ReportError {
    fn from(_: Error) -> Self {
        Self
    }
}

async fn write_report(_: Option<FencingToken>) -> Result<u32, ReportError> {
    Ok(1)
}

async fn guards(locks: &Locks<MemoryBackend>) -> Result<(), ReportError> {
    let Some(guard) = locks.try_acquire("daily-report").await? else {
        return Ok(());
    };
    guard.protect(write_report(guard.token())).await??;
    guard.release().await?;
    Ok(())
}

async fn bodies(locks: &Locks<MemoryBackend>) -> Result<u32, ReportError> {
    let mut pages = 0;
    let done = locks
        .run_once("daily-report", async |lock| {
            write_report(lock.token()).await
        })
        .await?;
    locks
        .with_lock("daily-report", async |lock| {
            lock.check()?;
            pages += write_report(lock.token()).await?;
            Ok::<_, ReportError>(())
        })
        .await?;
    Ok(pages + done.unwrap_or_default())
}

async fn names(locks: &Locks<MemoryBackend>) -> Result<()> {
    drop(locks.acquire("x").await?);
    drop(locks.acquire(String::from("x")).await?);
    drop(locks.acquire(&String::from("x")).await?);
    drop(locks.acquire(42).await?);
    drop(locks.acquire((1, 2)).await?);
    drop(locks.acquire(LockKey::new("x")?).await?);
    drop(locks.acquire(&LockKey::new("x")?).await?);
    drop(locks.acquire_all(["a", "b"]).await?);
    drop(locks.acquire_all(&[String::from("a")]).await?);
    drop(locks.acquire_all(vec![1, 2]).await?);
    drop(locks.acquire_within("x", Wait::forever()).await?);
    let named = locks.lock("x").shared().label("me");
    drop(named.within(Duration::from_secs(5)).await?);
    Ok(())
}

/// A scheduler's job: boxed, and given what it may own.
type Job = Arc<dyn Fn(Lost) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

fn schedule<B: LockBackend>(locks: Locks<B>, job: Job) -> tokio::task::JoinHandle<Result<()>> {
    tokio::spawn(async move {
        let run = locks.run_once("k", async |lock| job(lock.lost()).await);
        run.await.map(|_| ())
    })
}

fn boxed<'a, B: LockBackend>(
    locks: &'a Locks<B>,
    name: &'a str,
) -> Pin<Box<dyn Future<Output = Result<Option<usize>>> + Send + 'a>> {
    Box::pin(async move {
        let body = locks.run_once(name, async |lock| {
            lock.check()?;
            Ok::<_, Error>(name.len())
        });
        body.await
    })
}

async fn named_body<H: Held>(guard: &mut LockGuard<H>) -> Result<u8> {
    guard.check()?;
    Ok(1)
}

async fn with_a_named_body<B: LockBackend>(locks: Locks<B>) -> Result<Option<u8>> {
    locks.run_once("k", named_body).await
}

async fn selects(locks: &Locks<MemoryBackend>) -> Result<()> {
    let guard = locks.acquire("x").await?;
    tokio::select! {
        error = guard.lost() => return Err(error),
        () = tokio::time::sleep(Duration::from_millis(1)) => {}
    }
    guard.release().await
}

#[tokio::test]
async fn what_users_write_runs_in_spawned_tasks() {
    let locks = Locks::new(MemoryBackend::new());
    let erased = locks.clone().erased();
    let shared = locks.clone().erased_shared();
    let job: Job = Arc::new(|lost| Box::pin(async move { lost.check() }));

    schedule(locks.clone(), Arc::clone(&job))
        .await
        .unwrap()
        .unwrap();
    schedule(erased.clone(), job).await.unwrap().unwrap();
    assert_eq!(boxed(&erased, "name").await.unwrap(), Some(4));
    let spawned = tokio::spawn(with_a_named_body(erased));
    assert_eq!(spawned.await.unwrap().unwrap(), Some(1));
    let spawned = tokio::spawn(async move { shared.lock("x").shared().await?.release().await });
    spawned.await.unwrap().unwrap();

    let spawned = tokio::spawn(async move {
        guards(&locks).await.unwrap();
        assert_eq!(bodies(&locks).await.unwrap(), 2);
        names(&locks).await.unwrap();
        selects(&locks).await.unwrap();
        // the body borrows, across an await, what the task owns
        let name = String::from("n");
        let body = locks.run_once(name.as_str(), async |lock| {
            let name = &name;
            write_report(lock.token()).await?;
            Ok::<_, ReportError>(name.len())
        });
        body.await.unwrap()
    });
    assert_eq!(spawned.await.unwrap(), Some(1));
}
