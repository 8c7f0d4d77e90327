use std::{
    marker::PhantomData,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use sqlock::{
    Locks, SessionBackend, XactBackend,
    session::{Fencing, SessionOptions},
    xact::XactOptions,
};
use sqlock_conformance::{Harness, LossHarness};
use sqlock_tests::TestDatabase;
use sqlx::postgres::PgPoolOptions;

use crate::{kinds::Kind, support::is_of_waiting};

/// A database with tokens; every node is a session in it.
pub(crate) struct Session<K> {
    database: TestDatabase,
    nodes: AtomicUsize,
    kind: PhantomData<K>,
}

#[async_trait]
impl<K: Kind> Harness for Session<K> {
    type Backend = SessionBackend;

    async fn start() -> Self {
        let database = TestDatabase::create().await;
        K::make(&database).await;
        Self {
            database,
            nodes: AtomicUsize::new(0),
            kind: PhantomData,
        }
    }

    async fn node(&self) -> Locks<SessionBackend> {
        let number = self.nodes.fetch_add(1, Ordering::Relaxed);
        let options = SessionOptions::new()
            .application_name(format!("node {number}"))
            .fencing(Fencing::new());
        let backend = options.connect(&self.database.url()).await;
        Locks::new(backend.expect("a session"))
    }

    async fn held(&self) -> usize {
        let locks = self.database.advisory_locks().await;
        let held = locks.iter().filter(|lock| lock.granted);
        held.filter(|lock| !is_of_waiting(lock)).count()
    }

    async fn leftovers(&self) -> usize {
        granted(&self.database).await
    }
}

#[async_trait]
impl<K: Kind> LossHarness for Session<K> {
    async fn break_holder(&self, node: &Locks<SessionBackend>) {
        let name = node.backend().application_name().to_owned();
        for backend in self.database.backends().await {
            if backend.application_name == name {
                self.database.terminate(backend.pid).await;
            }
        }
    }
}

/// A database with tokens; every node has a pool of its own.
pub(crate) struct Xact<K> {
    database: TestDatabase,
    kind: PhantomData<K>,
}

#[async_trait]
impl<K: Kind> Harness for Xact<K> {
    type Backend = XactBackend;

    async fn start() -> Self {
        let database = TestDatabase::create().await;
        K::make(&database).await;
        Self {
            database,
            kind: PhantomData,
        }
    }

    async fn node(&self) -> Locks<XactBackend> {
        let pool = PgPoolOptions::new()
            .max_connections(50)
            .connect_lazy_with(self.database.options());
        let options = XactOptions::new()
            .poll_interval(Duration::from_millis(50))
            .fencing(Fencing::new());
        let locks = Locks::new(options.with_pool(pool));
        // the first lock of a backend takes longer
        drop(locks.acquire("first").await.expect("a lock"));
        locks
    }

    async fn held(&self) -> usize {
        granted(&self.database).await
    }
}

async fn granted(database: &TestDatabase) -> usize {
    let locks = database.advisory_locks().await;
    locks.iter().filter(|lock| lock.granted).count()
}
