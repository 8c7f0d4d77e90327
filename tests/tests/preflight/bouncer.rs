//! A PgBouncer in front of a test's database.

use sqlock_tests::{PgBouncer, PoolMode, TestDatabase};

pub(crate) struct Bouncer {
    /// It runs for as long as this lives.
    _pooler: PgBouncer,
    url: String,
}

impl Bouncer {
    pub(crate) async fn start(
        database: &TestDatabase,
        mode: PoolMode,
        settings: &[(&str, &str)],
    ) -> Self {
        let mut pooler = PgBouncer::with(mode).max_client_conn(1000);
        for (name, value) in settings {
            pooler = pooler.setting(name, value);
        }
        let pooler = pooler.start(database.server()).await;
        Self {
            url: database.url_through(&pooler),
            _pooler: pooler,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }
}
