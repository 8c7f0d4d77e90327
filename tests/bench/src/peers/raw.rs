//! Statements by hand, through sqlx: the floor.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::sync::Mutex;

use crate::cycle::{Cycle, cycle};

/// Try and unlock, two prepared statements on one connection.
pub(crate) fn session(connection: PgConnection) -> Cycle {
    let connection = Arc::new(Mutex::new(connection));
    cycle(move |key| {
        let connection = connection.clone();
        async move {
            let mut connection = connection.lock().await;
            let is_ours: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)")
                .bind(key)
                .fetch_one(&mut *connection)
                .await?;
            let was_ours: bool = sqlx::query_scalar("select pg_advisory_unlock($1)")
                .bind(key)
                .fetch_one(&mut *connection)
                .await?;
            ensure!(is_ours && was_ours, "the lock is somebody else's");
            Ok(())
        }
    })
}

/// 128 keys a statement, then their unlocks: what one connection can do at most.
pub(crate) fn batches(
    connection: PgConnection,
) -> impl FnMut(u64) -> BoxFuture<'static, Result<()>> + Send + 'static {
    let connection = Arc::new(Mutex::new(connection));
    move |operations| {
        let connection = connection.clone();
        Box::pin(async move {
            let mut connection = connection.lock().await;
            let mut left = operations;
            while left > 0 {
                let size = left.min(128);
                let keys: Vec<i64> = (0..i64::try_from(size)?).collect();
                for function in ["pg_try_advisory_lock", "pg_advisory_unlock"] {
                    let statement = format!("select {function}(k) from unnest($1::bigint[]) as k");
                    let done: Vec<bool> = sqlx::query_scalar(AssertSqlSafe(statement))
                        .bind(&keys)
                        .fetch_all(&mut *connection)
                        .await?;
                    ensure!(done.iter().all(|done| *done), "a lock is somebody else's");
                }
                left -= size;
            }
            Ok(())
        })
    }
}

/// BEGIN, try, COMMIT: nobody looks whether the commit was one.
pub(crate) fn transaction(pool: PgPool) -> Cycle {
    cycle(move |key| {
        let pool = pool.clone();
        async move {
            let mut connection = pool.acquire().await?;
            let mut transaction = connection.begin().await?;
            let is_ours: bool = sqlx::query_scalar("select pg_try_advisory_xact_lock($1)")
                .bind(key)
                .persistent(false)
                .fetch_one(&mut *transaction)
                .await?;
            ensure!(is_ours, "the lock is somebody else's");
            transaction.commit().await?;
            Ok(())
        }
    })
}

/// A lease in a table, one statement to take it and one to give it back.
pub(crate) fn lease(pool: PgPool) -> Cycle {
    cycle(move |key| {
        let pool = pool.clone();
        async move {
            let taken = sqlx::query(
                "insert into raw_lease as l (name, owner, expires_at) \
                 values ($1, $2, clock_timestamp() + interval '30 s') \
                 on conflict (name) do update \
                 set owner = excluded.owner, expires_at = excluded.expires_at \
                 where l.expires_at < clock_timestamp()",
            )
            .bind(key)
            .bind(key)
            .persistent(false)
            .execute(&pool)
            .await?;
            ensure!(taken.rows_affected() == 1, "the lease is somebody else's");
            let given_back = sqlx::query(
                "update raw_lease set owner = null, expires_at = '-infinity' \
                 where name = $1 and owner = $2",
            )
            .bind(key)
            .bind(key)
            .persistent(false)
            .execute(&pool)
            .await?;
            ensure!(given_back.rows_affected() == 1, "the lease was lost");
            Ok(())
        }
    })
}

pub(crate) async fn create_lease_table(connection: &mut PgConnection) -> Result<()> {
    sqlx::raw_sql(
        "drop table if exists raw_lease; \
         create table raw_lease (name bigint primary key, owner bigint, expires_at timestamptz) \
         with (fillfactor = 50)",
    )
    .execute(connection)
    .await?;
    Ok(())
}
