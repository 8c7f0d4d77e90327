//! Transactions on a pooled connection: in one message, or in several.

use futures_util::TryStreamExt;
use sqlock_postgres::shielded;
use sqlx::{
    AssertSqlSafe, Either, PgConnection, PgPool, Postgres, pool::PoolConnection, postgres::PgRow,
};

/// What a failed transaction is repeated for: serialization failure and deadlock.
const REPEATABLE: [&str; 2] = ["40001", "40P01"];
const ATTEMPTS: u32 = 5;

/// Sends `sql` as it is, by the simple protocol, and gives all rows of all its statements.
///
/// Dropped midway, the connection is closed.
pub(super) async fn run(pool: &PgPool, sql: String) -> sqlx::Result<Vec<PgRow>> {
    let mut attempts = Attempts::default();
    loop {
        match shielded(run_once(pool, sql.clone())).await.flatten() {
            Err(error) if attempts.go_on(&error) => {}
            answer => return answer,
        }
    }
}

/// Of a transaction that may succeed when it is done again.
#[derive(Debug, Default)]
pub(super) struct Attempts(u32);

impl Attempts {
    /// Whether another is worth it after this one's error.
    pub(super) fn go_on(&mut self, error: &sqlx::Error) -> bool {
        self.0 += 1;
        self.0 < ATTEMPTS && is_repeatable(error)
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

/// A transaction of several messages. Dropped before its end, or failed, it closes its connection.
pub(super) struct Transaction(Borrowed);

impl Transaction {
    pub(super) async fn begin(pool: &PgPool, settings: &'static str) -> sqlx::Result<Self> {
        let mut transaction = Self(Borrowed(Some(pool.acquire().await?)));
        let begin = format!("begin; {settings}");
        let begin = sqlx::raw_sql(AssertSqlSafe(begin));
        begin.execute(transaction.connection()?).await?;
        Ok(transaction)
    }

    pub(super) fn connection(&mut self) -> sqlx::Result<&mut PgConnection> {
        let connection = self.0.0.as_deref_mut();
        connection.ok_or(sqlx::Error::PoolClosed)
    }

    pub(super) async fn commit(mut self) -> sqlx::Result<()> {
        sqlx::raw_sql("commit").execute(self.connection()?).await?;
        drop(self.0.0.take());
        Ok(())
    }
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
