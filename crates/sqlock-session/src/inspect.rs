//! Who holds a lock.

use std::time::Duration;

use sqlock_core::{Error, Holder, LockKey, Result};
use sqlock_postgres::Failure;
use sqlx::postgres::PgListener;
use tokio::time::timeout;

use crate::BACKEND;

/// Asks `pg_locks`, which costs more the more locks there are: not for hot paths.
pub(crate) async fn holders(
    listener: &mut PgListener,
    key: &LockKey,
    limit: Duration,
) -> Result<Vec<Holder>> {
    let Ok(answer) = timeout(limit, sqlock_postgres::holders(listener, key.id())).await else {
        return Err(Error::Unavailable {
            backend: BACKEND,
            source: format!("no answer within {limit:?}").into(),
        });
    };
    answer.map_err(|error| Failure::of(error).error(BACKEND, "inspect"))
}
