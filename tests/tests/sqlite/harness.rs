use std::{collections::HashMap, fs, marker::PhantomData, sync::Mutex, time::Duration};

use async_trait::async_trait;
use sqlock::{
    Locks, LossCause, SqliteBackend,
    sqlite::{AnyOrder, InOrder, LeaseOptions, Order, SqliteOptions},
};
use sqlock_conformance::{ClockHarness, Harness, LeaseHarness, LossHarness, Step};
use tempfile::TempDir;

use crate::tools::{raw, run};

/// A file; every node has connections of its own to it.
pub(crate) struct Sqlite<O> {
    directory: TempDir,
    /// The labels of the nodes, by where their backends are.
    labels: Mutex<HashMap<usize, String>>,
    order: PhantomData<O>,
}

/// How those who wait are served.
pub(crate) trait Served: Order {
    fn serve(options: SqliteOptions) -> SqliteOptions<Self>
    where
        Self: Sized;
}

impl Served for AnyOrder {
    fn serve(options: SqliteOptions) -> SqliteOptions {
        options
    }
}

impl Served for InOrder {
    fn serve(options: SqliteOptions) -> SqliteOptions<Self> {
        options.queue()
    }
}

impl<O: Served> Sqlite<O> {
    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("locks.db")
    }
}

pub(crate) fn options() -> SqliteOptions {
    SqliteOptions::new().leases(
        LeaseOptions::new()
            .ttl(Duration::from_secs(3))
            .poll_interval(Duration::from_millis(50)),
    )
}

fn address<O: Order>(node: &Locks<SqliteBackend<O>>) -> usize {
    std::ptr::from_ref(node.backend()).addr()
}

#[async_trait]
impl<O: Served> Harness for Sqlite<O> {
    type Backend = SqliteBackend<O>;

    async fn start() -> Self {
        let directory = TempDir::new().expect("a directory");
        let world = Self {
            directory,
            labels: Mutex::default(),
            order: PhantomData,
        };
        O::serve(SqliteOptions::new())
            .open(world.path())
            .await
            .expect("the file opens");
        world
    }

    async fn node(&self) -> Locks<SqliteBackend<O>> {
        let backend = O::serve(options()).open(self.path()).await;
        let backend = backend.expect("the file opens");
        let mut labels = self.labels.lock().expect("labels");
        let label = format!("node {}", labels.len());
        let locks = Locks::builder(backend).label(label.as_str()).build();
        labels.insert(address(&locks), label);
        locks
    }

    async fn held(&self) -> usize {
        let mut connection = raw(&self.path()).await;
        let held = "select count(*) from sqlock_leases
                    where owner is not null and boot = $1 and expires_at > $2";
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot's id");
        let count: i64 = sqlx::query_scalar(held)
            .bind(boot.trim())
            .bind(micros_since_boot())
            .fetch_one(&mut connection)
            .await
            .expect("a count");
        usize::try_from(count).expect("a count is not negative")
    }
}

/// To the hundredth of a second, as the system tells everybody.
fn micros_since_boot() -> i64 {
    let uptime = fs::read_to_string("/proc/uptime").expect("an uptime");
    let (seconds, rest) = uptime.split_once('.').expect("a point");
    let hundredths: i64 = rest[..2].parse().expect("a number");
    seconds.parse::<i64>().expect("a number") * 1_000_000 + hundredths * 10_000
}

#[async_trait]
impl<O: Served> LossHarness for Sqlite<O> {
    const NOTICE: Duration = Duration::from_secs(3);

    async fn break_holder(&self, node: &Locks<SqliteBackend<O>>) {
        let label = self.labels.lock().expect("labels")[&address(node)].clone();
        let mut connection = raw(&self.path()).await;
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
impl<O: Served> LeaseHarness for Sqlite<O> {
    async fn block(&self) -> Box<dyn Send> {
        let mut connection = raw(&self.path()).await;
        run(&mut connection, "begin immediate").await;
        // dropped, it is rolled back
        Box::new(connection)
    }
}

#[async_trait]
impl<O: Served> ClockHarness for Sqlite<O> {
    async fn step(&self, step: Step) {
        let micros = |by: Duration| i64::try_from(by.as_micros()).expect("not that long");
        let ahead = match step {
            Step::Ahead(by) => micros(by),
            Step::Back(by) => -micros(by),
        };
        sqlx::query(
            "update sqlock_leases set acquired_at = acquired_at - $1, expires_at = expires_at - $1",
        )
        .bind(ahead)
        .execute(&mut raw(&self.path()).await)
        .await
        .expect("an update");
    }
}
