//! What a test looks at from the side: by a connection to another database of the server, so that
//! the look itself never shows.

use std::time::Duration;

use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection as _, Row as _};

use crate::TestDatabase;
use crate::eventually::holds_within;

/// A row of `pg_locks`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdvisoryLock {
    /// The backend that holds the lock or waits for it.
    pub pid: i32,
    /// The high half of a `bigint` key, or the first of a pair.
    pub classid: u32,
    /// The low half of a `bigint` key, or the second of a pair.
    pub objid: u32,
    /// 1 for a `bigint` key, 2 for a pair.
    pub objsubid: i16,
    /// `ExclusiveLock` or `ShareLock`.
    pub mode: String,
    /// Whether it is held, or waited for.
    pub granted: bool,
}

/// A row of `pg_stat_activity`: a client's backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// What `pg_backend_pid()` says there.
    pub pid: i32,
    /// The client's name for itself.
    pub application_name: String,
    /// `active`, `idle`, `idle in transaction` …
    pub state: Option<String>,
    /// The last statement, or the one under way.
    pub query: String,
    /// Whether it pins a snapshot: `backend_xmin` is not null.
    pub pins_snapshot: bool,
    /// What it waits for.
    pub wait_event: Option<String>,
}

impl AdvisoryLock {
    /// The key, where it is a `bigint`.
    #[must_use]
    pub fn id(&self) -> Option<i64> {
        let bits = u64::from(self.classid) << 32 | u64::from(self.objid);
        (self.objsubid == 1).then_some(bits.cast_signed())
    }
}

impl TestDatabase {
    /// All advisory locks of this database, held and waited for, in order.
    pub async fn advisory_locks(&self) -> Vec<AdvisoryLock> {
        let mut connection = self.observer().await;
        let locks = advisory_locks(&mut connection, self.name()).await;
        close(connection).await;
        locks
    }

    /// Waits until this database has no advisory lock; panics, naming those left, after `timeout`.
    pub async fn wait_until_no_advisory_locks(&self, timeout: Duration) {
        let mut connection = self.observer().await;
        let mut left = Vec::new();
        let are_gone = holds_within(timeout, async || {
            left = advisory_locks(&mut connection, self.name()).await;
            left.is_empty()
        });
        let are_gone = are_gone.await;
        close(connection).await;
        assert!(
            are_gone,
            "advisory locks are left after {timeout:?}: {left:?}"
        );
    }

    /// The clients' backends in this database, by pid; the one that looks is not among them.
    pub async fn backends(&self) -> Vec<Backend> {
        let mut connection = self.observer().await;
        let rows = sqlx::query(
            "select pid, application_name, state, coalesce(query, '') as query,
                    backend_xmin is not null as pins_snapshot, wait_event
             from pg_stat_activity
             where datname = $1 and backend_type = 'client backend'
             order by pid",
        )
        .bind(self.name())
        .fetch_all(&mut connection)
        .await
        .expect("pg_stat_activity can be read");
        close(connection).await;
        rows.iter().map(backend).collect()
    }

    /// How many clients are connected to this database.
    pub async fn count_connections(&self) -> usize {
        self.backends().await.len()
    }

    /// Ends a backend by `pg_terminate_backend`; panics where there is none.
    pub async fn terminate(&self, pid: i32) {
        let mut connection = self.observer().await;
        let was_there: bool = sqlx::query_scalar("select pg_terminate_backend($1)")
            .bind(pid)
            .fetch_one(&mut connection)
            .await
            .expect("a superuser may terminate a backend");
        close(connection).await;
        assert!(was_there, "no backend {pid} to terminate");
    }

    async fn observer(&self) -> PgConnection {
        self.server().connect().await
    }
}

async fn advisory_locks(connection: &mut PgConnection, database: &str) -> Vec<AdvisoryLock> {
    let rows = sqlx::query(
        "select pid, classid, objid, objsubid, mode, granted
         from pg_locks
         where locktype = 'advisory'
           and database = (select oid from pg_database where datname = $1)
         order by classid, objid, objsubid, granted desc, pid",
    )
    .bind(database)
    .fetch_all(connection)
    .await
    .expect("pg_locks can be read");
    rows.iter().map(advisory_lock).collect()
}

fn advisory_lock(row: &PgRow) -> AdvisoryLock {
    AdvisoryLock {
        pid: row.get("pid"),
        classid: row.get::<Oid, _>("classid").0,
        objid: row.get::<Oid, _>("objid").0,
        objsubid: row.get("objsubid"),
        mode: row.get("mode"),
        granted: row.get("granted"),
    }
}

fn backend(row: &PgRow) -> Backend {
    Backend {
        pid: row.get("pid"),
        application_name: row.get("application_name"),
        state: row.get("state"),
        query: row.get("query"),
        pins_snapshot: row.get("pins_snapshot"),
        wait_event: row.get("wait_event"),
    }
}

async fn close(connection: PgConnection) {
    connection.close().await.expect("an idle connection closes");
}
