//! Leases in a file of SQLite, for the processes of one host.

mod connection;
mod file;
mod host_clock;
mod rows;
mod schema;

use std::{collections::HashSet, path::Path, time::Duration};

use async_trait::async_trait;
use sqlock_core::{FencingToken, Result};
use sqlx::{
    Row, SqliteConnection, SqlitePool,
    sqlite::{
        SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
    },
};

use crate::{
    LeaseRecord,
    holder::HolderInfo,
    store::{Claim, Claimed, Exchanged, GiveBack, Renewal, Renewed, Store},
};
use connection::{Borrowed, begin, commit, told};
use host_clock::HostClock;

pub(crate) const NAME: &str = "sqlite";

/// A file, and the connections to it.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    requests: SqlitePool,
    /// Of its own: a lease must not be lost to those who wait for the connection.
    renewals: SqlitePool,
    clock: HostClock,
}

impl SqliteStore {
    /// Creates the file where it is missing; the table is made by [`Store::create_table`].
    pub(crate) fn prepare(path: &Path) -> Result<()> {
        file::prepare(path)
    }

    pub(crate) fn new(path: &Path, busy_timeout: Duration) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .busy_timeout(busy_timeout)
            .journal_mode(SqliteJournalMode::Wal)
            // a token must not go back with the power
            .synchronous(SqliteSynchronous::Full);
        let pool = || {
            SqlitePoolOptions::new()
                .max_connections(1)
                .acquire_timeout(busy_timeout)
                .connect_lazy_with(options.clone())
        };
        Self {
            requests: pool(),
            renewals: pool(),
            clock: HostClock::new(),
        }
    }

    /// A look that takes no write lock, so that a refusal writes nothing: the answers where every
    /// request is refused, and `None` where one may be granted.
    async fn refusals(
        &self,
        connection: &mut SqliteConnection,
        claims: &[Claim],
    ) -> sqlx::Result<Option<Vec<Claimed>>> {
        let mut refused = HashSet::new();
        let mut answers = Vec::with_capacity(claims.len());
        for claim in claims {
            let left = rows::remaining(connection, &self.clock, &claim.row).await?;
            if left.is_some() {
                refused.insert(claim.request);
            }
            let remaining = left.unwrap_or_default();
            answers.push(Claimed::Refused { remaining });
        }
        let all = claims.iter().all(|claim| refused.contains(&claim.request));
        Ok(all.then_some(answers))
    }

    /// Within a transaction that has the write lock.
    async fn claim(
        &self,
        connection: &mut SqliteConnection,
        claims: &[Claim],
        holder: &HolderInfo,
    ) -> sqlx::Result<Vec<Claimed>> {
        let mut claimed = Vec::with_capacity(claims.len());
        for request in claims.chunk_by(|one, next| one.request == next.request) {
            let mut left = Vec::with_capacity(request.len());
            for claim in request {
                left.push(rows::remaining(connection, &self.clock, &claim.row).await?);
            }
            let is_free = left.iter().all(Option::is_none);
            for (claim, remaining) in request.iter().zip(left) {
                claimed.push(if is_free {
                    rows::take(connection, &self.clock, claim, holder).await?
                } else {
                    let remaining = remaining.unwrap_or_default();
                    Claimed::Refused { remaining }
                });
            }
        }
        Ok(claimed)
    }

    async fn exchange_once(
        &self,
        give_back: &[GiveBack],
        claims: &[Claim],
        holder: &HolderInfo,
    ) -> sqlx::Result<Exchanged> {
        let mut borrowed = Borrowed::from(&self.requests).await?;
        let connection = borrowed.connection()?;
        let mut exchanged = Exchanged::default();
        if give_back.is_empty()
            && let Some(refusals) = self.refusals(connection, claims).await?
        {
            exchanged.claimed = refusals;
            borrowed.give_back();
            return Ok(exchanged);
        }
        begin(connection).await?;
        for item in give_back {
            let outcome = rows::give_back(connection, &self.clock, item).await?;
            exchanged.given_back.push(outcome);
        }
        exchanged.claimed = self.claim(connection, claims, holder).await?;
        commit(connection).await?;
        borrowed.give_back();
        Ok(exchanged)
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn exchange(
        &self,
        give_back: &[GiveBack],
        claims: &[Claim],
        holder: &HolderInfo,
    ) -> Result<Exchanged> {
        told("acquire", self.exchange_once(give_back, claims, holder)).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        told("renew", async {
            let mut borrowed = Borrowed::from(&self.renewals).await?;
            let connection = borrowed.connection()?;
            let mut renewed = Vec::with_capacity(renewals.len());
            begin(connection).await?;
            for renewal in renewals {
                renewed.push(rows::renew(connection, &self.clock, renewal).await?);
            }
            commit(connection).await?;
            borrowed.give_back();
            Ok(renewed)
        })
        .await
    }

    async fn list(&self, row: Option<&str>) -> Result<Vec<LeaseRecord>> {
        told("list", async {
            let found = sqlx::query(
                "select name, token, host, pid, label, payload, acquired_at, expires_at
                 from sqlock_leases
                 where owner is not null and boot = $1 and expires_at > $2
                   and ($3 is null or name = $3)
                 order by name",
            )
            .bind(&self.clock.boot)
            .bind(self.clock.now())
            .bind(row)
            .fetch_all(&self.requests)
            .await?;
            found.iter().map(|row| self.record(row)).collect()
        })
        .await
    }

    async fn sweep(&self, unused_for: Duration) -> Result<u64> {
        told("sweep", async {
            let mut borrowed = Borrowed::from(&self.requests).await?;
            let connection = borrowed.connection()?;
            begin(connection).await?;
            let swept = rows::sweep(connection, &self.clock, unused_for).await?;
            commit(connection).await?;
            borrowed.give_back();
            Ok(swept)
        })
        .await
    }

    async fn create_table(&self) -> Result<()> {
        let mut borrowed = told("open the file", Borrowed::from(&self.requests)).await?;
        let connection = told("open the file", async { borrowed.connection() }).await?;
        told("create the table", begin(connection)).await?;
        schema::create(connection).await?;
        told("create the table", commit(connection)).await?;
        borrowed.give_back();
        Ok(())
    }

    async fn close(&self) {
        self.requests.close().await;
        self.renewals.close().await;
    }
}

impl SqliteStore {
    fn record(&self, row: &SqliteRow) -> sqlx::Result<LeaseRecord> {
        Ok(LeaseRecord {
            row: row.try_get(0)?,
            token: FencingToken::new(row.try_get(1)?),
            host: row.try_get(2)?,
            pid: row.try_get(3)?,
            label: row.try_get(4)?,
            payload: row.try_get(5)?,
            acquired_at: self.clock.time_of_day(row.try_get(6)?),
            expires_at: self.clock.time_of_day(row.try_get(7)?),
        })
    }
}
