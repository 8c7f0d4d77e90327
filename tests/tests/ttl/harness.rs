use std::{collections::HashMap, sync::Mutex, time::Duration};

use async_trait::async_trait;
use sqlock::{
    Locks, LossCause, TtlBackend,
    ttl::{LeaseOptions, TtlOptions},
};
use sqlock_conformance::{Harness, LossHarness};
use sqlock_tests::TestDatabase;

/// A database with a table of leases.
pub(crate) struct Ttl {
    database: TestDatabase,
    /// The labels of the nodes, by where their backends are.
    labels: Mutex<HashMap<usize, String>>,
}

impl Ttl {
    async fn count(&self, filter: &str) -> usize {
        let mut connection = self.database.connect().await;
        let sql = format!("select count(*) from sqlock_leases where {filter}");
        let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut connection)
            .await
            .expect("a count");
        usize::try_from(count).expect("a count is not negative")
    }
}

fn address(node: &Locks<TtlBackend>) -> usize {
    std::ptr::from_ref(node.backend()).addr()
}

#[async_trait]
impl Harness for Ttl {
    type Backend = TtlBackend;

    async fn start() -> Self {
        let database = TestDatabase::create().await;
        let backend = TtlBackend::connect(&database.url()).expect("options");
        backend.create_table().await.expect("a table");
        Self {
            database,
            labels: Mutex::default(),
        }
    }

    async fn node(&self) -> Locks<TtlBackend> {
        let leases = LeaseOptions::new()
            .ttl(Duration::from_secs(3))
            .poll_interval(Duration::from_millis(50));
        let options = TtlOptions::new().leases(leases);
        let backend = options.connect(&self.database.url()).expect("options");
        let mut labels = self.labels.lock().expect("labels");
        let label = format!("node {}", labels.len());
        let locks = Locks::builder(backend).label(label.as_str()).build();
        labels.insert(address(&locks), label);
        locks
    }

    async fn held(&self) -> usize {
        self.count("owner is not null and expires_at > clock_timestamp()")
            .await
    }
}

#[async_trait]
impl LossHarness for Ttl {
    const NOTICE: Duration = Duration::from_secs(3);

    async fn break_holder(&self, node: &Locks<TtlBackend>) {
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
