//! The ways to the server by which leases must work.

use std::{ops::Deref, panic::resume_unwind, thread};

use sqlock::ttl::{LeaseOptions, Protocol, TtlOptions};
use sqlock_tests::{PgBouncer, PoolMode, TestDatabase};

use crate::{
    support::run,
    tools::{LeaseLocks, create_table, locks, options},
};

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    /// Through a PgBouncer in transaction mode that does not look after prepared statements.
    Pooled,
    /// Directly, by prepared statements.
    Prepared,
}

const WAYS: [Way; 3] = [Way::Direct, Way::Pooled, Way::Prepared];

/// A database with the table, and a way to it.
pub(crate) struct World {
    database: TestDatabase,
    pooler: Option<PgBouncer>,
    protocol: Protocol,
}

/// Runs a test by every way at once, each in a world and on a runtime of its own.
pub(crate) fn everywhere(test: impl AsyncFn(World) + Sync) {
    let by = |way| run(async || test(World::start(way).await).await);
    thread::scope(|scope| {
        let runs = WAYS.map(|way| {
            let run = thread::Builder::new().name(format!("{way:?}"));
            run.spawn_scoped(scope, move || by(way)).expect("a thread")
        });
        // all are waited for before the first that failed is told
        let outcomes = runs.map(thread::ScopedJoinHandle::join);
        for outcome in outcomes {
            outcome.unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

impl World {
    pub(crate) async fn start(way: Way) -> Self {
        let database = TestDatabase::create().await;
        create_table(&database).await;
        let pooler = match way {
            Way::Direct | Way::Prepared => None,
            Way::Pooled => Some(pooler(&database).await),
        };
        let protocol = match way {
            Way::Direct | Way::Pooled => Protocol::Simple,
            Way::Prepared => Protocol::Prepared,
        };
        Self {
            database,
            pooler,
            protocol,
        }
    }

    /// Where clients connect to.
    pub(crate) fn url(&self) -> String {
        match &self.pooler {
            None => self.database.url(),
            Some(pooler) => self.database.url_through(pooler),
        }
    }

    /// What another process would have.
    pub(crate) fn node(&self) -> LeaseLocks {
        self.node_with(options())
    }

    pub(crate) fn node_with(&self, leases: LeaseOptions) -> LeaseLocks {
        let options = TtlOptions::new().protocol(self.protocol);
        locks(options.leases(leases), &self.url())
    }
}

pub(crate) async fn pooler(database: &TestDatabase) -> PgBouncer {
    let settings = PgBouncer::with(PoolMode::Transaction).max_client_conn(1000);
    settings.start(database.server()).await
}

impl Deref for World {
    type Target = TestDatabase;

    fn deref(&self) -> &TestDatabase {
        &self.database
    }
}
