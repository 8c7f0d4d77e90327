use std::time::Duration;

use async_trait::async_trait;
use sqlock::{Locks, XactBackend, xact::XactOptions};
use sqlock_conformance::Harness;
use sqlock_tests::TestDatabase;
use sqlx::postgres::PgPoolOptions;

/// A database; every node has a pool of its own.
pub(crate) struct Xact {
    database: TestDatabase,
}

#[async_trait]
impl Harness for Xact {
    type Backend = XactBackend;

    async fn start() -> Self {
        let database = TestDatabase::create().await;
        Self { database }
    }

    async fn node(&self) -> Locks<XactBackend> {
        let pool = PgPoolOptions::new()
            .max_connections(50)
            .connect_lazy_with(self.database.options());
        let options = XactOptions::new().poll_interval(Duration::from_millis(50));
        Locks::new(options.with_pool(pool))
    }

    async fn held(&self) -> usize {
        let locks = self.database.advisory_locks().await;
        locks.iter().filter(|lock| lock.granted).count()
    }
}
