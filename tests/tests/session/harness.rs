use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use sqlock::{Locks, RESERVED_PAIR_CLASSES, SessionBackend, session::SessionOptions};
use sqlock_conformance::{Harness, LossHarness};
use sqlock_tests::{AdvisoryLock, TestDatabase};

/// A database; every node is a session in it.
pub(crate) struct Session {
    database: TestDatabase,
    nodes: AtomicUsize,
}

impl Session {
    async fn locks(&self, pick: impl Fn(&AdvisoryLock) -> bool) -> usize {
        let locks = self.database.advisory_locks().await;
        locks
            .iter()
            .filter(|lock| lock.granted && pick(lock))
            .count()
    }
}

fn is_bookkeeping(lock: &AdvisoryLock) -> bool {
    lock.objsubid == 2 && RESERVED_PAIR_CLASSES.contains(&lock.classid.cast_signed())
}

#[async_trait]
impl Harness for Session {
    type Backend = SessionBackend;

    async fn start() -> Self {
        Self {
            database: TestDatabase::create().await,
            nodes: AtomicUsize::new(0),
        }
    }

    async fn node(&self) -> Locks<SessionBackend> {
        let number = self.nodes.fetch_add(1, Ordering::Relaxed);
        let options = SessionOptions::new().application_name(format!("node {number}"));
        Locks::new(
            options
                .connect(&self.database.url())
                .await
                .expect("a session"),
        )
    }

    async fn held(&self) -> usize {
        self.locks(|lock| !is_bookkeeping(lock)).await
    }

    async fn leftovers(&self) -> usize {
        self.locks(|_| true).await
    }
}

#[async_trait]
impl LossHarness for Session {
    async fn break_holder(&self, node: &Locks<SessionBackend>) {
        let name = node.backend().application_name().to_owned();
        let backends = self.database.backends().await;
        let own = backends
            .iter()
            .filter(|backend| backend.application_name == name);
        for backend in own {
            self.database.terminate(backend.pid).await;
        }
    }
}
