//! sqlx's own `PgAdvisoryLock`.

use std::sync::Arc;

use anyhow::bail;
use sqlx::Either;
use sqlx::postgres::{PgAdvisoryLock, PgAdvisoryLockKey, PgPool};

use crate::cycle::{Cycle, cycle};

pub(crate) const LACKS: &str = "cancel safety, loss signal; a connection a lock";

pub(crate) fn session(pool: PgPool) -> Cycle {
    cycle(move |key| {
        let pool = pool.clone();
        async move {
            let lock = Arc::new(PgAdvisoryLock::with_key(PgAdvisoryLockKey::BigInt(key)));
            let connection = pool.acquire().await?;
            match lock.try_acquire(connection).await? {
                Either::Left(guard) => {
                    guard.release_now().await?;
                    Ok(())
                }
                Either::Right(_) => bail!("the lock is somebody else's"),
            }
        }
    })
}
