//! Leases in a file of SQLite, for the processes of one host.

mod claims;
mod connection;
mod failure;
mod file;
mod host_clock;
mod network;
mod rows;
mod schema;
mod statements;
mod waiting;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlock_core::Result;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use crate::{
    LeaseRecord,
    holder::HolderInfo,
    store::{Ears, Exchange, Exchanged, List, Plan, QueueRow, Renewal, Renewed, Store},
};
use connection::Slot;
use failure::{Failure, told};
pub(crate) use file::LeaseFile;
pub(crate) use host_clock::HostClock;
use rows::Rows;
pub(crate) use statements::Statements;

pub(crate) const NAME: &str = "sqlite";

/// A file, and the connections to it.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    requests: Slot,
    /// Of its own: a lease must not be lost to those who wait for the connection.
    renewals: Slot,
    clock: HostClock,
    statements: Arc<Statements>,
    list: List,
}

/// What every store of one file needs.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) file: LeaseFile,
    pub(crate) statements: Arc<Statements>,
    pub(crate) busy_timeout: Duration,
    pub(crate) list: List,
}

impl Place {
    fn slot(&self) -> Slot {
        let options = SqliteConnectOptions::new()
            .filename(self.file.path())
            .busy_timeout(self.busy_timeout)
            .journal_mode(SqliteJournalMode::Wal)
            // a token must not go back with the power
            .synchronous(SqliteSynchronous::Full)
            // of which macOS makes more only when it is asked to
            .pragma("fullfsync", "on");
        Slot::new(self.file.clone(), options)
    }

    /// Makes what is missing in the file, and tells which clock it goes by.
    pub(crate) async fn settle(&self) -> Result<HostClock> {
        let slot = self.slot();
        let clock = schema::settle(&slot, &self.statements, self.list).await;
        slot.close().await;
        clock
    }
}

impl SqliteStore {
    pub(crate) fn new(place: &Place, clock: HostClock) -> Self {
        Self {
            requests: place.slot(),
            renewals: place.slot(),
            clock,
            statements: Arc::clone(&place.statements),
            list: place.list,
        }
    }

    fn rows(&self) -> Rows<'_> {
        Rows {
            clock: &self.clock,
            statements: &self.statements,
            list: self.list,
        }
    }

    async fn exchange_once(
        &self,
        exchange: &Exchange,
        holder: &HolderInfo,
    ) -> Result<Exchanged, Failure> {
        let Exchange {
            join,
            leave,
            give_back,
            claims,
        } = exchange;
        let mut borrowed = self.requests.borrow().await?;
        let mut exchanged = Exchanged::default();
        let only_claims = join.is_empty() && leave.is_empty() && give_back.is_empty();
        if only_claims
            && let Some(refusals) =
                claims::refusals(&mut borrowed.connection, self.rows(), claims).await?
        {
            exchanged.claimed = refusals;
            borrowed.give_back();
            return Ok(exchanged);
        }
        borrowed.begin().await?;
        let connection = &mut borrowed.connection;
        for join in join {
            let ticket = self.rows().join(connection, join, holder).await?;
            exchanged.tickets.push(Some(ticket));
        }
        for leave in leave {
            self.rows().leave(connection, leave).await?;
        }
        for item in give_back {
            let outcome = self.rows().give_back(connection, item).await?;
            exchanged.given_back.push(outcome);
        }
        exchanged.claimed = claims::take(connection, self.rows(), claims, holder).await?;
        borrowed.commit().await?;
        borrowed.give_back();
        Ok(exchanged)
    }

    async fn renew_once(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, Failure> {
        let mut borrowed = self.renewals.borrow().await?;
        borrowed.begin().await?;
        let mut renewed = Vec::with_capacity(renewals.len());
        for renewal in renewals {
            let outcome = self.rows().renew(&mut borrowed.connection, renewal);
            renewed.push(outcome.await?);
        }
        borrowed.commit().await?;
        borrowed.give_back();
        Ok(renewed)
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> Plan {
        Plan {
            list: self.list,
            ears: Ears::None,
        }
    }

    async fn queue(&self, row: &str) -> Result<Vec<QueueRow>> {
        if self.list != List::Queue {
            return Ok(Vec::new());
        }
        told("look at the queue", async {
            let mut borrowed = self.requests.borrow().await?;
            let queue = self.rows().queue(&mut borrowed.connection, row).await?;
            borrowed.give_back();
            Ok(queue)
        })
        .await
    }

    async fn exchange(&self, exchange: &Exchange, holder: &HolderInfo) -> Result<Exchanged> {
        told("acquire", self.exchange_once(exchange, holder)).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        match self.renew_once(renewals).await {
            // others use another file by now
            Err(Failure::Replaced(_)) => Ok(vec![Renewed::Removed; renewals.len()]),
            answer => told("renew", async { answer }).await,
        }
    }

    async fn list(&self, row: Option<&str>) -> Result<Vec<LeaseRecord>> {
        told("list", async {
            let mut borrowed = self.requests.borrow().await?;
            let records = self.rows().list(&mut borrowed.connection, row).await?;
            borrowed.give_back();
            Ok(records)
        })
        .await
    }

    async fn sweep(&self, unused_for: Duration) -> Result<u64> {
        told("sweep", async {
            let mut borrowed = self.requests.borrow().await?;
            borrowed.begin().await?;
            let swept = self
                .rows()
                .sweep(&mut borrowed.connection, unused_for)
                .await?;
            borrowed.commit().await?;
            borrowed.give_back();
            Ok(swept)
        })
        .await
    }

    #[cfg(feature = "postgres")]
    async fn create_table(&self) -> Result<()> {
        schema::settle(&self.requests, &self.statements, self.list)
            .await
            .map(drop)
    }

    async fn close(&self) {
        self.requests.close().await;
        self.renewals.close().await;
    }
}
