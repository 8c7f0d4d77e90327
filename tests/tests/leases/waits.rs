//! What the tests of waiting have in common.

use std::time::Duration;

use sqlock::{
    Locks, QueueBackend, Queued, TtlBackend,
    ttl::{AnyOrder, InOrder, LeaseOptions, Order, TtlOptions},
};
use sqlock_tests::{PgBouncer, PoolMode, PostgresServer, TestDatabase, eventually};
use sqlx::PgConnection;

use crate::support::{PATIENCE, ask};

/// Nothing that comes about by a poll or the end of a lease comes about in a test.
pub(crate) const FOREVER: Duration = Duration::from_secs(600);

/// How the nodes reach the server. They always listen directly.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    Direct,
    /// Through a PgBouncer in transaction mode.
    Pooled,
}

/// A database with the tables of leases and of those who wait.
pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pooler: Option<PgBouncer>,
}

pub(crate) type QueueLocks = Locks<TtlBackend<InOrder>>;

/// Leases that do not end, and are looked at once.
pub(crate) fn patient() -> LeaseOptions {
    LeaseOptions::new().ttl(FOREVER).poll_interval(FOREVER)
}

impl World {
    pub(crate) async fn create(way: Way) -> Self {
        Self::on(TestDatabase::create().await, way).await
    }

    /// On a server of its own.
    pub(crate) async fn on_server(server: &PostgresServer) -> Self {
        Self::on(server.database().await, Way::Direct).await
    }

    async fn on(database: TestDatabase, way: Way) -> Self {
        let pooler = match way {
            Way::Direct => None,
            Way::Pooled => Some(PgBouncer::start(database.server(), PoolMode::Transaction).await),
        };
        let world = Self { database, pooler };
        let node = world.queueing(patient());
        node.backend().create_table().await.expect("two tables");
        world
    }

    /// A node that waits in the queue, and is woken.
    pub(crate) fn queueing(&self, leases: LeaseOptions) -> QueueLocks {
        self.node(self.listening_options(leases).queue())
    }

    /// A node that is woken, in no order.
    pub(crate) fn listening(&self, leases: LeaseOptions) -> Locks<TtlBackend> {
        self.node(self.listening_options(leases))
    }

    fn listening_options(&self, leases: LeaseOptions) -> TtlOptions<AnyOrder> {
        let options = TtlOptions::new().leases(leases);
        options.listen_on(self.database.url())
    }

    pub(crate) fn node<O: Order>(&self, options: TtlOptions<O>) -> Locks<TtlBackend<O>> {
        let backend = match &self.pooler {
            None => options.connect(&self.database.url()),
            Some(pooler) => options.connect(&self.database.url_through(pooler)),
        };
        Locks::new(backend.expect("options"))
    }

    /// Until so many waiters are known to listen, who then look once more and not again.
    pub(crate) async fn until_listening(&self, count: i64) {
        self.until("listens and expires_at > clock_timestamp()", count)
            .await;
    }

    /// Until the table has so many waiters, dead or alive.
    pub(crate) async fn until_waiting(&self, count: i64) {
        self.until("true", count).await;
    }

    async fn until(&self, filter: &str, count: i64) {
        let mut side = self.database.connect().await;
        let statement = format!("select count(*) from sqlock_leases_waiters where {filter}");
        for _ in 0..1000 {
            if ask::<i64>(&mut side, &statement).await == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("there are not {count} waiters: {filter}");
    }

    /// The server processes that listen.
    pub(crate) async fn listeners(&self) -> Vec<i32> {
        let backends = self.database.backends().await;
        let listening = backends
            .iter()
            .filter(|backend| backend.query.starts_with("LISTEN"));
        listening.map(|backend| backend.pid).collect()
    }
}

pub(crate) async fn places<B: QueueBackend>(locks: &Locks<B>, key: &str) -> Vec<Queued> {
    locks.queue(key).await.expect("a queue")
}

/// Until so many are in the queue.
pub(crate) async fn until_queued<B: QueueBackend>(locks: &Locks<B>, key: &str, count: usize) {
    eventually(PATIENCE, async || places(locks, key).await.len() == count).await;
}

/// One who stands in line and never looks, for so long taken to be alive.
pub(crate) async fn stand_in_line(side: &mut PgConnection, key: &str, ticket: i64, lives: &str) {
    let statement = format!(
        "insert into sqlock_leases_waiters
           (name, waiter, priority, ticket, since, expires_at, listens)
         values ('{key}', 'somebody {ticket}', 0, {ticket}, clock_timestamp(),
           clock_timestamp() + '{lives}'::interval, true)"
    );
    crate::support::execute(side, &statement).await;
}
