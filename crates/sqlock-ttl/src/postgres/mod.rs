//! Leases in a table of PostgreSQL.

mod connection;
mod floor;
mod listener;
mod literal;
mod prepared;
mod schema;
mod shared;
mod sql;
mod statements;
mod table_name;
mod waiting;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use sqlock_core::{Error, FencingToken, Queued, Result, Whose};
use sqlock_postgres::Failure;
use sqlx::{PgPool, Row, error::DatabaseError, postgres::PgRow};

use crate::{
    LeaseRecord, Protocol,
    holder::HolderInfo,
    store::{
        Claimed, Ears, Exchange, Exchanged, GivenBack, List, Listening, Plan, QueueRow, Renewal,
        Renewed, Store, unexpected,
    },
};
use floor::{Floor, Floors};
pub(crate) use listener::Route;
use prepared::Prepared;
pub(crate) use shared::{Columns, SharedSql, SharedStore};
use statements::Statements;
pub(crate) use table_name::TableName;
use waiting::{Order, Waiters};

pub(crate) const NAME: &str = "ttl";

/// A table, and the connections to it.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    requests: PgPool,
    /// Of its own: a lease must not be lost to those who wait for connections.
    renewals: PgPool,
    name: TableName,
    statements: Statements,
    prepared: Option<Prepared>,
    floors: Floors,
    list: List,
    /// By which releases are heard.
    route: Option<Route>,
}

impl PostgresStore {
    pub(crate) fn new(
        requests: PgPool,
        renewals: PgPool,
        name: TableName,
        list: List,
        route: Option<Route>,
        protocol: Protocol,
    ) -> Self {
        let order = match list {
            List::None => None,
            List::Listeners => Some(Order::Any),
            List::Queue => Some(Order::Queue),
        };
        let waiters = order.map(|order| Waiters {
            table: name.quoted_waiters(),
            sequence: name.quoted_sequence(),
            order,
        });
        Self {
            requests,
            renewals,
            statements: Statements::new(&name, waiters),
            prepared: (protocol == Protocol::Prepared).then(|| Prepared::new(&name)),
            floors: Floors::default(),
            name,
            list,
            route,
        }
    }
}

impl PostgresStore {
    async fn exchange_above(
        &self,
        floor: Floor,
        exchange: &Exchange,
        holder: &HolderInfo,
    ) -> sqlx::Result<Exchanged> {
        let pool = &self.requests;
        if let Some(prepared) = &self.prepared {
            return prepared.exchange(pool, exchange, holder, floor).await;
        }
        let sql = self.statements.exchange(exchange, holder, floor);
        let mut exchanged = Exchanged::unknown(exchange);
        for row in &connection::run(pool, sql).await? {
            read_exchanged(row, &mut exchanged)?;
        }
        Ok(exchanged)
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> Plan {
        Plan {
            list: self.list,
            ears: self.route.as_ref().map_or(Ears::None, |_| Ears::Given),
        }
    }

    async fn exchange(&self, exchange: &Exchange, holder: &HolderInfo) -> Result<Exchanged> {
        let floor = self.floors.now();
        let mut exchanged = self.exchange_above(floor, exchange, holder).await;
        if let Err(error) = &exchanged
            && floor == Floor::Timeline
            && floor::hides_timeline(&self.requests, error).await
        {
            exchanged = self.exchange_above(Floor::Clock, exchange, holder).await;
            if exchanged.is_ok() {
                self.floors.timeline_is_hidden();
            }
        }
        exchanged.map_err(|error| match &self.prepared {
            Some(_) => prepared::failure(error, "acquire"),
            None => pool_failure(error, "acquire"),
        })
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        if let Some(prepared) = &self.prepared {
            let renewed = prepared.renew(&self.renewals, renewals).await;
            return renewed.map_err(|error| prepared::failure(error, "renew"));
        }
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

    async fn wake(&self, rows: &[Arc<str>]) -> Result<()> {
        let Some(sql) = self.statements.wake(rows) else {
            return Ok(());
        };
        let woken = connection::run(&self.requests, sql).await;
        woken
            .map(drop)
            .map_err(|error| pool_failure(error, "notify"))
    }

    fn listen(&self) -> Option<Listening> {
        let route = self.route.as_ref()?;
        Some(route.listen(&self.requests))
    }

    async fn check_listening(&self) -> Result<()> {
        match &self.route {
            Some(route) => route.check(&self.requests).await,
            None => Err(Error::InvalidOption {
                option: "listen_on",
                reason: "it was not given".to_owned(),
            }),
        }
    }

    async fn queue(&self, row: &str) -> Result<Vec<QueueRow>> {
        let Some(sql) = self.statements.queue(row) else {
            return Ok(Vec::new());
        };
        let failure = |error| pool_failure(error, "look at the queue");
        let rows = connection::run(&self.requests, sql)
            .await
            .map_err(failure)?;
        let places = (1..).zip(&rows);
        let queue = places.map(|(place, row)| read_queued(place, row).map_err(failure));
        queue.collect()
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
        let failed = |error| pool_failure(error, "sweep");
        let sql = self.statements.sweep(unused_for);
        let rows = connection::run(&self.requests, sql).await.map_err(failed)?;
        let swept = rows.first().map(|row| row.try_get::<i64, _>(0)).transpose();
        let swept = swept.map_err(failed)?.unwrap_or_default();
        Ok(swept.unsigned_abs())
    }

    async fn create_table(&self) -> Result<()> {
        schema::create(&self.requests, &self.name, self.list).await
    }

    async fn close(&self) {
        self.requests.close().await;
        self.renewals.close().await;
    }
}

impl Exchanged {
    /// Before any row of the answer was read.
    fn unknown(exchange: &Exchange) -> Self {
        Self {
            tickets: vec![None; exchange.join.len()],
            given_back: vec![GivenBack::NotOurs; exchange.give_back.len()],
            claimed: vec![Claimed::Vanished; exchange.claims.len()],
        }
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
        "w" => *exchanged.tickets.get_mut(index).ok_or_else(missing)? = Some(row.try_get(2)?),
        "q" => {
            let remaining = remaining(row)?;
            let claimed = exchanged.claimed.get_mut(index).ok_or_else(missing)?;
            let is_free = Claimed::Refused {
                remaining: Duration::ZERO,
            };
            if *claimed == Claimed::Vanished || *claimed == is_free {
                *claimed = Claimed::Queued { remaining };
            }
        }
        "g" => {
            let token = FencingToken::new(row.try_get(2)?);
            *exchanged.claimed.get_mut(index).ok_or_else(missing)? = Claimed::Granted(Some(token));
        }
        _ => {
            let remaining = remaining(row)?;
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

fn remaining(row: &PgRow) -> sqlx::Result<Duration> {
    let micros: i64 = row.try_get(3)?;
    Ok(Duration::from_micros(
        u64::try_from(micros).unwrap_or_default(),
    ))
}

fn read_queued(place: u32, row: &PgRow) -> sqlx::Result<QueueRow> {
    let (priority, since) = (row.try_get(1)?, moment(row.try_get(5)?));
    let mut queued = Queued::new(place, priority, Whose::Theirs, since);
    queued.host = row.try_get(2)?;
    queued.pid = row.try_get(3)?;
    queued.label = row.try_get(4)?;
    Ok(QueueRow {
        waiter: row.try_get(0)?,
        queued,
    })
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
