use std::{collections::HashMap, sync::Mutex, time::Duration};

use async_trait::async_trait;
use sqlock::{
    Locks, LossCause, SqliteBackend,
    sqlite::{LeaseOptions, SqliteOptions},
};
use sqlock_conformance::{Harness, LossHarness};
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

/// A file; every node has connections of its own to it.
pub(crate) struct Sqlite {
    directory: TempDir,
    /// The labels of the nodes, by where their backends are.
    labels: Mutex<HashMap<usize, String>>,
}

impl Sqlite {
    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("locks.db")
    }

    async fn connect(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new()
            .filename(self.path())
            .busy_timeout(Duration::from_secs(10));
        SqliteConnection::connect_with(&options)
            .await
            .expect("the file opens")
    }
}

pub(crate) fn options() -> SqliteOptions {
    SqliteOptions::new().leases(
        LeaseOptions::new()
            .ttl(Duration::from_secs(3))
            .poll_interval(Duration::from_millis(50)),
    )
}

fn address(node: &Locks<SqliteBackend>) -> usize {
    std::ptr::from_ref(node.backend()).addr()
}

#[async_trait]
impl Harness for Sqlite {
    type Backend = SqliteBackend;

    async fn start() -> Self {
        let directory = TempDir::new().expect("a directory");
        let world = Self {
            directory,
            labels: Mutex::default(),
        };
        SqliteBackend::open(world.path())
            .await
            .expect("the file opens");
        world
    }

    async fn node(&self) -> Locks<SqliteBackend> {
        let backend = options().open(self.path()).await;
        let backend = backend.expect("the file opens");
        let mut labels = self.labels.lock().expect("labels");
        let label = format!("node {}", labels.len());
        let locks = Locks::builder(backend).label(label.as_str()).build();
        labels.insert(address(&locks), label);
        locks
    }

    async fn held(&self) -> usize {
        let observer = SqliteBackend::open(self.path())
            .await
            .expect("the file opens");
        observer.leases().await.expect("the file can be read").len()
    }
}

#[async_trait]
impl LossHarness for Sqlite {
    const NOTICE: Duration = Duration::from_secs(3);

    async fn break_holder(&self, node: &Locks<SqliteBackend>) {
        let label = self.labels.lock().expect("labels")[&address(node)].clone();
        let mut connection = self.connect().await;
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
