//! One lock and its release, as a value; and many tasks that go through it.

use std::sync::Arc;

use anyhow::Result;
use futures_util::future::BoxFuture;

/// Takes the lock of a key, and gives it back.
pub(crate) type Cycle = Arc<dyn Fn(i64) -> BoxFuture<'static, Result<()>> + Send + Sync>;

pub(crate) fn cycle<F, Fut>(body: F) -> Cycle
where
    F: Fn(i64) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    Arc::new(move |key| Box::pin(body(key)))
}

/// So many operations, shared out among tasks that each have a key of their own.
pub(crate) fn by_tasks(
    tasks: u64,
    cycle: Cycle,
) -> impl FnMut(u64) -> BoxFuture<'static, Result<()>> + Send + 'static {
    move |operations| spread(tasks, operations, cycle.clone(), |task| task)
}

/// The same, on one key.
pub(crate) fn on_one_key(
    tasks: u64,
    cycle: Cycle,
) -> impl FnMut(u64) -> BoxFuture<'static, Result<()>> + Send + 'static {
    move |operations| spread(tasks, operations, cycle.clone(), |_| 0)
}

fn spread(
    tasks: u64,
    operations: u64,
    cycle: Cycle,
    key_of: fn(u64) -> u64,
) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        if tasks == 1 {
            for _ in 0..operations {
                cycle(1_000_000).await?;
            }
            return Ok(());
        }
        let mut running = tokio::task::JoinSet::new();
        for task in 0..tasks {
            let cycle = cycle.clone();
            let share = operations / tasks + u64::from(task < operations % tasks);
            let key = 1_000_000 + i64::try_from(key_of(task))?;
            running.spawn(async move {
                for _ in 0..share {
                    cycle(key).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = running.join_next().await {
            done??;
        }
        Ok(())
    })
}
