//! A table that others use too, by a protocol of theirs: name, owner, end.

mod sql;

use std::time::Duration;

use async_trait::async_trait;
use sqlock_core::Result;
use sqlx::PgPool;

use super::{NAME, connection, pool_failure, read_exchanged, read_renewed};
use crate::{
    LeaseRecord,
    holder::HolderInfo,
    store::{Claimed, Exchange, Exchanged, Renewal, Renewed, Store},
};
pub(crate) use sql::{Columns, SharedSql};

#[derive(Debug)]
pub(crate) struct SharedStore {
    requests: PgPool,
    /// Of its own: a lease must not be lost to those who wait for connections.
    renewals: PgPool,
    sql: SharedSql,
}

impl SharedStore {
    pub(crate) fn new(requests: PgPool, renewals: PgPool, sql: SharedSql) -> Self {
        Self {
            requests,
            renewals,
            sql,
        }
    }
}

#[async_trait]
impl Store for SharedStore {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn exchange(&self, exchange: &Exchange, _: &HolderInfo) -> Result<Exchanged> {
        let failure = |error| pool_failure(error, "acquire");
        let sql = self.sql.exchange(exchange);
        let rows = connection::run(&self.requests, sql)
            .await
            .map_err(failure)?;
        let mut exchanged = Exchanged::unknown(exchange);
        for row in &rows {
            read_exchanged(row, &mut exchanged).map_err(failure)?;
        }
        for claimed in &mut exchanged.claimed {
            if let Claimed::Granted(token) = claimed {
                *token = None;
            }
        }
        Ok(exchanged)
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        let failure = |error| pool_failure(error, "renew");
        let sql = self.sql.renew(renewals);
        let rows = connection::run(&self.renewals, sql)
            .await
            .map_err(failure)?;
        let mut renewed = vec![Renewed::Removed; renewals.len()];
        for row in &rows {
            read_renewed(row, &mut renewed).map_err(failure)?;
        }
        Ok(renewed)
    }

    /// The table does not say what a lease is to say.
    async fn list(&self, _: Option<&str>) -> Result<Vec<LeaseRecord>> {
        Ok(Vec::new())
    }

    /// Its rows are not ours to remove.
    async fn sweep(&self, _: Duration) -> Result<u64> {
        Ok(0)
    }

    /// Others have made it.
    async fn create_table(&self) -> Result<()> {
        Ok(())
    }

    async fn close(&self) {
        self.requests.close().await;
        self.renewals.close().await;
    }
}
