//! A process that contends for one key: it takes the lock, holds it for a moment, and writes down
//! when it had it.

use std::io::Write as _;
use std::str::FromStr as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use sqlock::{Locks, SessionBackend};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::measure::monotonic_nanos;
use crate::peers::redis;

const KEY: i64 = 77;
/// Long enough that the others wait when it ends.
const HOLD: Duration = Duration::from_millis(2);

#[derive(Debug, Args)]
pub(crate) struct Contend {
    pub(crate) kind: Kind,
    pub(crate) url: String,
    /// Clients of this process, each with a connection of its own.
    pub(crate) clients: usize,
    pub(crate) milliseconds: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Session,
    Blocked,
    Redis,
}

/// When the lock was had, and when its release was asked for, in nanoseconds.
pub(crate) type Times = (i64, i64);

impl Contend {
    pub(crate) async fn run(self) -> Result<()> {
        let mut clients = JoinSet::new();
        let mut ready = Vec::new();
        for _ in 0..self.clients {
            ready.push(Client::connect(self.kind, &self.url).await?);
        }
        println!("ready");
        // All processes begin together: the parent closes their input.
        tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await?;
        let end = Instant::now() + Duration::from_millis(self.milliseconds);
        for client in ready {
            clients.spawn(client.contend(end));
        }
        let mut out = std::io::stdout().lock();
        while let Some(times) = clients.join_next().await {
            for (had, left) in times?? {
                writeln!(out, "{had} {left}")?;
            }
        }
        Ok(())
    }
}

enum Client {
    Session(Locks<SessionBackend>),
    Blocked(Box<PgConnection>),
    Redis(rslock::LockManager),
}

impl Client {
    async fn connect(kind: Kind, url: &str) -> Result<Self> {
        Ok(match kind {
            Kind::Session => Self::Session(Locks::new(SessionBackend::connect(url).await?)),
            Kind::Blocked => {
                let options = PgConnectOptions::from_str(url)?.disable_statement_logging();
                let mut connection = options.connect().await?;
                connection.ping().await?;
                Self::Blocked(Box::new(connection))
            }
            Kind::Redis => Self::Redis(redis::manager(url.to_owned())),
        })
    }

    async fn contend(mut self, end: Instant) -> Result<Vec<Times>> {
        let mut times = Vec::new();
        while Instant::now() < end {
            times.push(self.once().await.context("a client failed")?);
        }
        Ok(times)
    }

    async fn once(&mut self) -> Result<Times> {
        match self {
            Self::Session(locks) => {
                let guard = locks.acquire(KEY).await?;
                let times = hold().await;
                guard.release().await?;
                Ok(times)
            }
            Self::Blocked(connection) => {
                sqlx::query("select pg_advisory_lock($1)")
                    .bind(KEY)
                    .execute(&mut **connection)
                    .await?;
                let times = hold().await;
                sqlx::query("select pg_advisory_unlock($1)")
                    .bind(KEY)
                    .execute(&mut **connection)
                    .await?;
                Ok(times)
            }
            Self::Redis(manager) => {
                let lock = redis::wait(manager, "hand-off").await?;
                let times = hold().await;
                manager.unlock(&lock).await;
                Ok(times)
            }
        }
    }
}

async fn hold() -> Times {
    let had = monotonic_nanos();
    sleep(HOLD).await;
    (had, monotonic_nanos())
}
