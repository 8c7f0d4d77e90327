use std::{collections::HashMap, marker::PhantomData, sync::Mutex, time::Duration};

use async_trait::async_trait;
use sqlock::{
    Locks, LossCause, TtlBackend,
    ttl::{AnyOrder, InOrder, LeaseOptions, Order, Protocol, TtlOptions},
};
use sqlock_conformance::{ClockHarness, Harness, LeaseHarness, LossHarness, Step};
use sqlock_tests::{PgBouncer, PoolMode, TestDatabase};

/// A database with a table of leases.
pub(crate) struct Ttl<W: Way> {
    database: TestDatabase,
    pooler: Option<PgBouncer>,
    /// The labels of the nodes, by where their backends are.
    labels: Mutex<HashMap<usize, String>>,
    way: PhantomData<W>,
}

/// How the nodes reach it, and how they wait.
#[async_trait]
pub(crate) trait Way: Send + Sync + 'static {
    type Order: Order;

    async fn pooler(database: &TestDatabase) -> Option<PgBouncer>;

    /// Of the node with this number.
    fn options(database: &TestDatabase, node: usize) -> TtlOptions<Self::Order>;
}

/// Directly, and nothing but polls; every other node by prepared statements.
pub(crate) struct Polling;

/// The same through a PgBouncer in transaction mode that does not look after prepared statements.
pub(crate) struct Pooled;

/// Through a PgBouncer in transaction mode, in a queue, and woken by a direct connection.
pub(crate) struct Queueing;

#[async_trait]
impl Way for Polling {
    type Order = AnyOrder;

    async fn pooler(_: &TestDatabase) -> Option<PgBouncer> {
        None
    }

    fn options(_: &TestDatabase, node: usize) -> TtlOptions {
        TtlOptions::new().protocol(if node.is_multiple_of(2) {
            Protocol::Prepared
        } else {
            Protocol::Simple
        })
    }
}

#[async_trait]
impl Way for Pooled {
    type Order = AnyOrder;

    async fn pooler(database: &TestDatabase) -> Option<PgBouncer> {
        Some(transaction_pooler(database).await)
    }

    fn options(_: &TestDatabase, _: usize) -> TtlOptions {
        TtlOptions::new()
    }
}

#[async_trait]
impl Way for Queueing {
    type Order = InOrder;

    async fn pooler(database: &TestDatabase) -> Option<PgBouncer> {
        Some(transaction_pooler(database).await)
    }

    fn options(database: &TestDatabase, _: usize) -> TtlOptions<InOrder> {
        TtlOptions::new().listen_on(database.url()).queue()
    }
}

async fn transaction_pooler(database: &TestDatabase) -> PgBouncer {
    let settings = PgBouncer::with(PoolMode::Transaction).max_client_conn(1000);
    settings.start(database.server()).await
}

impl<W: Way> Ttl<W> {
    fn connect(&self, leases: LeaseOptions, node: usize) -> TtlBackend<W::Order> {
        let options = W::options(&self.database, node).leases(leases);
        let backend = match &self.pooler {
            None => options.connect(&self.database.url()),
            Some(pooler) => options.connect(&self.database.url_through(pooler)),
        };
        backend.expect("options")
    }

    async fn count(&self, from: &str) -> usize {
        let mut connection = self.database.connect().await;
        let sql = format!("select count(*) from {from}");
        let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut connection)
            .await
            .expect("a count");
        usize::try_from(count).expect("a count is not negative")
    }
}

fn address<O: Order>(node: &Locks<TtlBackend<O>>) -> usize {
    std::ptr::from_ref(node.backend()).addr()
}

#[async_trait]
impl<W: Way> Harness for Ttl<W> {
    type Backend = TtlBackend<W::Order>;

    async fn start() -> Self {
        let database = TestDatabase::create().await;
        let world = Self {
            pooler: W::pooler(&database).await,
            database,
            labels: Mutex::default(),
            way: PhantomData,
        };
        let backend = world.connect(LeaseOptions::new(), 0);
        backend.create_table().await.expect("a table");
        world
    }

    async fn node(&self) -> Locks<TtlBackend<W::Order>> {
        let leases = LeaseOptions::new()
            .ttl(Duration::from_secs(3))
            .waiter_ttl(Duration::from_secs(3))
            .poll_interval(Duration::from_millis(50));
        let mut labels = self.labels.lock().expect("labels");
        let backend = self.connect(leases, labels.len());
        let label = format!("node {}", labels.len());
        let locks = Locks::builder(backend).label(label.as_str()).build();
        labels.insert(address(&locks), label);
        locks
    }

    async fn held(&self) -> usize {
        self.count("sqlock_leases where owner is not null and expires_at > clock_timestamp()")
            .await
    }

    async fn leftovers(&self) -> usize {
        let waiters = "sqlock_leases_waiters";
        let exists = format!("pg_class where relname = '{waiters}'");
        let waiting = match self.count(&exists).await {
            0 => 0,
            // those of a runtime that is gone are taken to be dead after a while
            _ => {
                let alive = format!("{waiters} where expires_at > clock_timestamp()");
                self.count(&alive).await
            }
        };
        waiting + self.held().await
    }
}

#[async_trait]
impl<W: Way> LossHarness for Ttl<W> {
    const NOTICE: Duration = Duration::from_secs(3);

    async fn break_holder(&self, node: &Locks<TtlBackend<W::Order>>) {
        let label = self.labels.lock().expect("labels")[&address(node)].clone();
        let mut connection = self.database.connect().await;
        sqlx::query("update sqlock_leases set owner = null, expires_at = null where label = $1")
            .bind(label)
            .execute(&mut connection)
            .await
            .expect("an update");
    }

    fn explains(cause: &LossCause) -> bool {
        matches!(
            cause,
            LossCause::TakenOver | LossCause::Removed | LossCause::Expired
        )
    }
}

#[async_trait]
impl<W: Way> LeaseHarness for Ttl<W> {
    async fn block(&self) -> Box<dyn Send> {
        let mut connection = self.database.connect().await;
        sqlx::raw_sql("begin; lock table sqlock_leases in access exclusive mode")
            .execute(&mut connection)
            .await
            .expect("a lock");
        // dropped, it is rolled back
        Box::new(connection)
    }
}

#[async_trait]
impl<W: Way> ClockHarness for Ttl<W> {
    async fn step(&self, step: Step) {
        let mut connection = self.database.connect().await;
        let ahead = match step {
            Step::Ahead(by) => by.as_secs_f64(),
            Step::Back(by) => -by.as_secs_f64(),
        };
        sqlx::query(
            "update sqlock_leases set acquired_at = acquired_at - make_interval(secs => $1),
               expires_at = expires_at - make_interval(secs => $1)",
        )
        .bind(ahead)
        .execute(&mut connection)
        .await
        .expect("an update");
    }
}
