use std::time::Duration;

use async_trait::async_trait;
use sqlock::{Locks, XactBackend, xact::XactOptions};
use sqlock_conformance::Harness;
use sqlock_tests::{PgBouncer, PoolMode, TestDatabase};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

/// A database; every node has a pool of its own.
pub(crate) struct Direct {
    database: TestDatabase,
}

/// The same through a PgBouncer in transaction mode. It has a server connection for every client
/// that is within a transaction at once, as some cases hold many locks.
pub(crate) struct Pooled {
    database: TestDatabase,
    pooler: PgBouncer,
}

fn node(options: PgConnectOptions) -> Locks<XactBackend> {
    let pool = PgPoolOptions::new()
        .max_connections(50)
        .connect_lazy_with(options);
    let options = XactOptions::new().poll_interval(Duration::from_millis(50));
    Locks::new(options.with_pool(pool))
}

async fn held(database: &TestDatabase) -> usize {
    let locks = database.advisory_locks().await;
    locks.iter().filter(|lock| lock.granted).count()
}

#[async_trait]
impl Harness for Direct {
    type Backend = XactBackend;

    async fn start() -> Self {
        let database = TestDatabase::create().await;
        Self { database }
    }

    async fn node(&self) -> Locks<XactBackend> {
        node(self.database.options())
    }

    async fn held(&self) -> usize {
        held(&self.database).await
    }
}

#[async_trait]
impl Harness for Pooled {
    type Backend = XactBackend;

    async fn start() -> Self {
        let database = TestDatabase::create().await;
        let pooler = PgBouncer::with(PoolMode::Transaction)
            .max_client_conn(1000)
            .pool_size(50)
            .start(database.server())
            .await;
        Self { database, pooler }
    }

    async fn node(&self) -> Locks<XactBackend> {
        node(self.database.through(&self.pooler))
    }

    async fn held(&self) -> usize {
        held(&self.database).await
    }
}
