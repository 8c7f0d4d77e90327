//! Leases in a table of PostgreSQL.

mod connection;
mod literal;
mod schema;
mod statements;
mod table_name;

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sqlock_core::{Error, FencingToken, Result};
use sqlock_postgres::Failure;
use sqlx::{PgPool, Row, error::DatabaseError, postgres::PgRow};

use crate::{
    LeaseRecord,
    holder::HolderInfo,
    store::{Claim, Claimed, Exchanged, GiveBack, GivenBack, Renewal, Renewed, Store, unexpected},
};
use statements::Statements;
pub(crate) use table_name::TableName;

pub(crate) const NAME: &str = "ttl";

/// A table, and the connections to it.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    requests: PgPool,
    /// Of its own: a lease must not be lost to those who wait for connections.
    renewals: PgPool,
    name: TableName,
    statements: Statements,
}

impl PostgresStore {
    pub(crate) fn new(requests: PgPool, renewals: PgPool, name: TableName) -> Self {
        Self {
            requests,
            renewals,
            statements: Statements::new(&name),
            name,
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn exchange(
        &self,
        give_back: &[GiveBack],
        claims: &[Claim],
        holder: &HolderInfo,
    ) -> Result<Exchanged> {
        let sql = self.statements.exchange(give_back, claims, holder);
        let rows = connection::run(&self.requests, sql)
            .await
            .map_err(|error| pool_failure(error, "acquire"))?;
        let mut exchanged = Exchanged {
            given_back: vec![GivenBack::NotOurs; give_back.len()],
            claimed: vec![Claimed::Vanished; claims.len()],
        };
        for row in &rows {
            read_exchanged(row, &mut exchanged).map_err(|error| pool_failure(error, "acquire"))?;
        }
        Ok(exchanged)
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        let sql = self.statements.renew(renewals);
        let rows = connection::run(&self.renewals, sql)
            .await
            .map_err(|error| pool_failure(error, "renew"))?;
        let mut renewed = vec![Renewed::Removed; renewals.len()];
        for row in &rows {
            read_renewed(row, &mut renewed).map_err(|error| pool_failure(error, "renew"))?;
        }
        Ok(renewed)
    }

    async fn list(&self, row: Option<&str>) -> Result<Vec<LeaseRecord>> {
        let rows = connection::run(&self.requests, self.statements.list(row))
            .await
            .map_err(|error| pool_failure(error, "list"))?;
        rows.iter()
            .map(|row| read_record(row).map_err(|error| pool_failure(error, "list")))
            .collect()
    }

    async fn sweep(&self, unused_for: Duration) -> Result<u64> {
        let sql = format!("{} returning 1", self.statements.sweep(unused_for));
        let rows = connection::run(&self.requests, sql)
            .await
            .map_err(|error| pool_failure(error, "sweep"))?;
        Ok(rows.len() as u64)
    }

    async fn create_table(&self) -> Result<()> {
        schema::create(&self.requests, &self.name).await
    }

    async fn close(&self) {
        self.requests.close().await;
        self.renewals.close().await;
    }
}

fn pool_failure(error: sqlx::Error, operation: &'static str) -> Error {
    let code = error.as_database_error().and_then(DatabaseError::code);
    if code.as_deref() == Some("42P01") {
        return Error::Backend {
            backend: NAME,
            operation,
            source: format!("{error}: create it by `create_table()` or the shipped migration")
                .into(),
        };
    }
    Failure::of(error).error(NAME, operation)
}

fn read_exchanged(row: &PgRow, exchanged: &mut Exchanged) -> sqlx::Result<()> {
    let kind: &str = row.try_get(0)?;
    let index = index(row)?;
    let missing = || sqlx::Error::Decode(unexpected(NAME, "an index too high").into());
    match kind {
        "b" => *exchanged.given_back.get_mut(index).ok_or_else(missing)? = GivenBack::Done,
        "o" => *exchanged.given_back.get_mut(index).ok_or_else(missing)? = GivenBack::Busy,
        "g" => {
            let token = FencingToken::new(row.try_get(2)?);
            *exchanged.claimed.get_mut(index).ok_or_else(missing)? = Claimed::Granted(token);
        }
        _ => {
            let micros: i64 = row.try_get(3)?;
            let remaining = Duration::from_micros(u64::try_from(micros).unwrap_or_default());
            let claimed = exchanged.claimed.get_mut(index).ok_or_else(missing)?;
            if *claimed == Claimed::Vanished {
                *claimed = Claimed::Refused { remaining };
            }
        }
    }
    Ok(())
}

fn read_renewed(row: &PgRow, renewed: &mut [Renewed]) -> sqlx::Result<()> {
    let (kind, state): (&str, &str) = (row.try_get(0)?, row.try_get(2)?);
    let missing = || sqlx::Error::Decode(unexpected(NAME, "an index too high").into());
    let renewed = renewed.get_mut(index(row)?).ok_or_else(missing)?;
    *renewed = match (kind, state, *renewed) {
        ("d", ..) | (_, _, Renewed::Done) => Renewed::Done,
        (_, "o", _) => Renewed::Busy,
        (_, "e", _) => Renewed::Expired,
        _ => Renewed::TakenOver,
    };
    Ok(())
}

fn index(row: &PgRow) -> sqlx::Result<usize> {
    let index: i32 = row.try_get(1)?;
    usize::try_from(index).map_err(|error| sqlx::Error::Decode(error.into()))
}

fn read_record(row: &PgRow) -> sqlx::Result<LeaseRecord> {
    Ok(LeaseRecord {
        row: row.try_get(0)?,
        token: FencingToken::new(row.try_get(1)?),
        host: row.try_get(2)?,
        pid: row.try_get(3)?,
        label: row.try_get(4)?,
        payload: row.try_get(5)?,
        acquired_at: moment(row.try_get(6)?),
        expires_at: moment(row.try_get(7)?),
    })
}

fn moment(micros_since_1970: i64) -> SystemTime {
    let micros = Duration::from_micros(micros_since_1970.unsigned_abs());
    let moment = if micros_since_1970 < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(micros)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(micros)
    };
    moment.unwrap_or(SystemTime::UNIX_EPOCH)
}
