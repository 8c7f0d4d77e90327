use std::time::Duration;

use sqlock::{
    LockGuard, Locks, XactBackend,
    xact::{XactHeld, XactOptions},
};
use sqlock_tests::{PgBouncer, PoolMode, TestDatabase, eventually};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Decode, PgConnection, PgPool, Postgres, Row as _, Type,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::support::{PATIENCE, execute, run};

pub(crate) type Guard = LockGuard<XactHeld>;

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    /// Through PgBouncer in transaction mode.
    Pooled,
}

/// A database with a table `work`, and the way to it.
pub(crate) struct World {
    pub(crate) database: TestDatabase,
    bouncer: Option<PgBouncer>,
}

/// Runs a test on a direct connection, and through a pooler, each in a world of its own.
pub(crate) fn both_ways(test: impl AsyncFn(World)) {
    for way in [Way::Direct, Way::Pooled] {
        eprintln!("{way:?}");
        run(async || test(World::new(way, &[]).await).await);
    }
}

pub(crate) fn directly(test: impl AsyncFnOnce(World)) {
    run(async || test(World::new(Way::Direct, &[]).await).await);
}

pub(crate) fn pooled(settings: &[(&str, &str)], test: impl AsyncFnOnce(World)) {
    run(async || test(World::new(Way::Pooled, settings).await).await);
}

impl World {
    pub(crate) async fn new(way: Way, settings: &[(&str, &str)]) -> Self {
        let database = TestDatabase::create().await;
        let mut connection = database.connect().await;
        let table = "create table work (n int unique deferrable initially deferred)";
        execute(&mut connection, table).await;
        let bouncer = match way {
            Way::Direct => None,
            Way::Pooled => {
                let mut bouncer = PgBouncer::with(PoolMode::Transaction).max_client_conn(1000);
                for (name, value) in settings {
                    bouncer = bouncer.setting(name, value);
                }
                Some(bouncer.start(database.server()).await)
            }
        };
        Self { database, bouncer }
    }

    pub(crate) fn options(&self) -> PgConnectOptions {
        match &self.bouncer {
            None => self.database.options(),
            Some(bouncer) => self.database.through(bouncer),
        }
    }

    pub(crate) fn url(&self) -> String {
        match &self.bouncer {
            None => self.database.url(),
            Some(bouncer) => self.database.url_through(bouncer),
        }
    }

    pub(crate) fn pool(&self, connections: u32) -> PgPool {
        PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(Duration::from_secs(5))
            .connect_lazy_with(self.options())
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        self.options().connect().await.unwrap()
    }

    /// Another process's, with a pool of four.
    pub(crate) fn locks(&self) -> Locks<XactBackend> {
        on(self.pool(4))
    }

    /// The table has these numbers, in order, by a look of its own.
    pub(crate) async fn has_work(&self, expected: &[i32]) {
        let mut connection = self.database.connect().await;
        let all = sqlx::raw_sql("select n from work order by n");
        let rows = all.fetch_all(&mut connection).await.unwrap();
        let work: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(work, expected);
    }

    /// Nothing is held, and no connection is within a transaction.
    #[track_caller]
    pub(crate) fn is_clean(&self) -> impl Future<Output = ()> {
        eventually(PATIENCE, async || {
            let backends = self.database.backends().await;
            let within = |state: &str| state.starts_with("idle in transaction");
            let mut states = backends.iter().filter_map(|it| it.state.as_deref());
            !states.any(within) && self.database.advisory_locks().await.is_empty()
        })
    }
}

pub(crate) fn on(pool: PgPool) -> Locks<XactBackend> {
    let options = XactOptions::new().poll_interval(Duration::from_millis(50));
    Locks::new(options.with_pool(pool))
}

pub(crate) async fn insert(guard: &mut Guard, n: i32) {
    let insert = format!("insert into work values ({n})");
    execute(guard.connection(), &insert).await;
}

/// What a future gives within so many moments, or nothing where it is dropped then. A moment is about
/// a microsecond, a thousandth of what a timer can do.
pub(crate) async fn within_moments<F: Future>(moments: u64, future: F) -> Option<F::Output> {
    let passed = async {
        for _ in 0..moments {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        output = future => Some(output),
        () = passed => None,
    }
}

/// One value, by a simple query: a prepared statement could meet another server connection.
pub(crate) async fn value<T>(connection: &mut PgConnection, statement: &str) -> T
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
{
    let row = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_one(connection);
    row.await.unwrap().get(0)
}

/// The SQLSTATE by which a statement fails.
pub(crate) async fn fails(connection: &mut PgConnection, statement: &str) -> String {
    let failed = sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection);
    let error = failed.await.expect_err("it fails");
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.unwrap_or_default().into_owned()
}

pub(crate) async fn process(connection: &mut PgConnection) -> i32 {
    value(connection, "select pg_backend_pid()").await
}
