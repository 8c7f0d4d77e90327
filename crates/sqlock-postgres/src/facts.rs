use sqlx::{Executor, Postgres, Row};

/// The server setting that, times its connections, bounds the locks of the whole server.
pub const LOCK_MEMORY_SETTING: &str = "max_locks_per_transaction";

/// What a backend must know of a server before its first lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The server process at the other end of the connection.
    pub backend_pid: i32,
    /// A hot standby: its advisory locks are its own, and nobody else sees them.
    pub is_standby: bool,
    /// How many locks the server can hold, for all of its clients together ([PostgreSQL manual,
    /// 20.12]).
    ///
    /// [PostgreSQL manual, 20.12]: https://www.postgresql.org/docs/current/runtime-config-locks.html
    pub lock_capacity: usize,
}

impl ServerFacts {
    /// Asks the server, in one round trip of the simple protocol.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn look<'c>(
        connection: impl Executor<'c, Database = Postgres>,
    ) -> sqlx::Result<Self> {
        let sql = "select pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(), \
                   pg_catalog.current_setting('max_locks_per_transaction')::bigint, \
                   pg_catalog.current_setting('max_connections')::bigint, \
                   pg_catalog.current_setting('max_prepared_transactions')::bigint";
        let row = connection.fetch_one(sqlx::raw_sql(sql)).await?;
        let number = |index: usize| row.try_get::<i64, _>(index);
        let capacity = number(2)?.saturating_mul(number(3)?.saturating_add(number(4)?));
        Ok(Self {
            backend_pid: row.try_get(0)?,
            is_standby: row.try_get(1)?,
            lock_capacity: usize::try_from(capacity).unwrap_or(0),
        })
    }

    /// The most locks that one process should take: a quarter of the server's. A client that uses
    /// up the lock memory stops new connections for everybody.
    #[must_use]
    pub const fn lock_budget(&self) -> usize {
        self.lock_capacity / 4
    }
}
