//! One message on a pooled connection.

use futures_util::TryStreamExt;
use sqlx::{AssertSqlSafe, Either, PgPool, Postgres, pool::PoolConnection, postgres::PgRow};

/// What a failed transaction is repeated for: serialization failure and deadlock.
const REPEATABLE: [&str; 2] = ["40001", "40P01"];
const ATTEMPTS: u32 = 5;

/// Sends `sql` as it is, by the simple protocol, and gives all rows of all its statements.
///
/// Dropped midway, the connection is closed.
pub(super) async fn run(pool: &PgPool, sql: String) -> sqlx::Result<Vec<PgRow>> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match run_once(pool, sql.clone()).await {
            Err(error) if attempt < ATTEMPTS && is_repeatable(&error) => {}
            answer => return answer,
        }
    }
}

async fn run_once(pool: &PgPool, sql: String) -> sqlx::Result<Vec<PgRow>> {
    let mut borrowed = Borrowed(Some(pool.acquire().await?));
    let Some(connection) = &mut borrowed.0 else {
        return Ok(Vec::new());
    };
    // every value in it went through `literal`
    let query = sqlx::raw_sql(AssertSqlSafe(sql));
    let answers: Result<Vec<_>, _> = query.fetch_many(&mut **connection).try_collect().await;
    let is_sound = match &answers {
        Ok(_) => true,
        // the implicit transaction ended with the error
        Err(error) => error.as_database_error().is_some(),
    };
    if is_sound {
        drop(borrowed.0.take());
    }
    let rows = answers?.into_iter().filter_map(Either::right);
    Ok(rows.collect())
}

fn is_repeatable(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| REPEATABLE.contains(&&*code))
}

/// A connection that is closed unless it is taken back: nobody else gets one of unknown state.
struct Borrowed(Option<PoolConnection<Postgres>>);

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.0 {
            connection.close_on_drop();
        }
    }
}
