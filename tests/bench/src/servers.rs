//! The servers that all contestants use: each is started here, on this machine, for this run.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use sqlock_tests::{PgBouncer, PoolMode, PostgresServer, TestDatabase};
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// `pg_stat_statements` counts for those who ask what a lock costs the server.
const STATISTICS: (&str, &str) = ("shared_preload_libraries", "pg_stat_statements");
const LOCKS: (&str, &str) = ("max_locks_per_transaction", "1024");

pub(crate) struct Servers {
    /// With `fsync` on, as a server in earnest has it.
    pub(crate) durable: Postgres,
    /// With `fsync` off: what is left is the cost of all but the disk.
    pub(crate) fast: Postgres,
    pub(crate) redis: Redis,
    pub(crate) redis_always: Redis,
}

pub(crate) struct Postgres {
    database: TestDatabase,
    pooler: PgBouncer,
}

impl Servers {
    pub(crate) async fn start() -> Result<Self> {
        Ok(Self {
            durable: Postgres::start(&[("fsync", "on"), ("full_page_writes", "on")]).await?,
            fast: Postgres::start(&[]).await?,
            redis: Redis::start("no").await?,
            redis_always: Redis::start("yes").await?,
        })
    }
}

impl Postgres {
    async fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let settings: Vec<_> = settings
            .iter()
            .copied()
            .chain([STATISTICS, LOCKS])
            .collect();
        let server = PostgresServer::start(&settings).await;
        let database = server.database().await;
        let mut admin = database.connect().await;
        sqlx::query("create extension pg_stat_statements")
            .execute(&mut admin)
            .await?;
        let pooler = PgBouncer::with(PoolMode::Transaction)
            .max_client_conn(500)
            .start(&server)
            .await;
        Ok(Self { database, pooler })
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    pub(crate) fn direct(&self) -> PgConnectOptions {
        self.database.options().disable_statement_logging()
    }

    pub(crate) fn pooled(&self) -> PgConnectOptions {
        self.database
            .through(&self.pooler)
            .disable_statement_logging()
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        self.database.connect().await
    }

    /// `size` connections that are open already, so that none is opened while time is taken.
    pub(crate) async fn pool(&self, options: PgConnectOptions, size: u32) -> Result<PgPool> {
        Ok(PgPoolOptions::new()
            .max_connections(size)
            .min_connections(size)
            .test_before_acquire(false)
            .connect_with(options)
            .await?)
    }
}

/// One node of Redis.
pub(crate) struct Redis {
    url: String,
    _process: Child,
    _directory: TempDir,
}

impl Redis {
    /// With an append-only file that is flushed at each write, or with none.
    async fn start(append_only: &str) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
        let directory = tempfile::tempdir()?;
        let process = Command::new("redis-server")
            .args([
                "--port",
                &port.to_string(),
                "--save",
                "",
                "--bind",
                "127.0.0.1",
            ])
            .args(["--appendonly", append_only, "--appendfsync", "always"])
            .arg("--dir")
            .arg(directory.path())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start redis-server (Debian's package redis-server has it)")?;
        for _ in 0..100 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .is_ok()
            {
                return Ok(Self {
                    url: format!("redis://127.0.0.1:{port}/"),
                    _process: process,
                    _directory: directory,
                });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("redis-server does not answer on port {port}");
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }
}
