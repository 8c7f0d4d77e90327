//! The same transactions by prepared statements, for direct connections.
//!
//! Through a transaction pooler the name of a statement can lead to none, or to another client's.
//! So every statement answers with a row that only it can know, without which nothing is committed.

use std::{fmt, sync::Arc};

use sqlock_core::Error;
use sqlock_postgres::shielded;
use sqlx::{
    AssertSqlSafe, PgPool, Postgres, Row as _, SqlSafeStr as _, SqlStr,
    error::DatabaseError,
    postgres::{PgArguments, PgRow},
    query::Query,
};

use super::{
    connection::{Attempts, Transaction},
    floor::Floor,
    pool_failure, read_exchanged, read_renewed,
    sql::Sql,
    statements::BEGINNING,
    table_name::TableName,
    waiting::Claiming,
};
use crate::{
    holder::HolderInfo,
    store::{Claim, Claimed, Exchange, Exchanged, GiveBack, GivenBack, Renewal, Renewed},
};

#[derive(Debug)]
pub(super) struct Prepared {
    /// Random, or two processes with tables of their own could take each other's for theirs.
    tag: String,
    give_back: SqlStr,
    still_ours: SqlStr,
    insert_missing: SqlStr,
    take: SqlStr,
    take_by_clock: SqlStr,
    as_they_are: SqlStr,
    renew: SqlStr,
    whose: SqlStr,
}

const LEASES: &str = "select i, name, owner, micros * interval '1 us'
     from unnest($1::int4[], $2::text[], $3::text[], $4::int8[]) as u(i, name, owner, micros)";
const NAMES: &str = "select i, name from unnest($1::int4[], $2::text[]) as u(i, name)";
const CLAIMS: &str = "select i, request, name, owner, micros * interval '1 us', label, payload
     from unnest($1::int4[], $2::int8[], $3::text[], $4::text[], $5::int8[], $6::text[], $7::text[])
       as u(i, request, name, owner, micros, label, payload)";

impl Prepared {
    pub(super) fn new(name: &TableName) -> Self {
        let tag = format!("{:032x}", rand::random::<u128>());
        let of_exchanges = |sql: String| tagged(&sql, &format!("'{tag}', 0, 0::bigint, 0::bigint"));
        let of_renewals = |sql: String| tagged(&sql, &format!("'{tag}', 0, ''"));
        let sql = Sql::new(name);
        let insert = sql.insert_missing(NAMES);
        let take = |floor| {
            let claiming = Claiming::default();
            of_exchanges(sql.take(CLAIMS, &"$8::text", &"$9::int8", &claiming, floor))
        };
        Self {
            give_back: of_exchanges(sql.give_back(LEASES)),
            still_ours: of_exchanges(sql.still_ours(LEASES)),
            insert_missing: of_exchanges(format!(
                "with i as ({insert} returning 1) \
                 select 'i', 0, 0::bigint, 0::bigint from i"
            )),
            take: take(Floor::Timeline),
            take_by_clock: take(Floor::Clock),
            as_they_are: of_exchanges(sql.as_they_are(NAMES)),
            renew: of_renewals(sql.renew(LEASES)),
            whose: of_renewals(sql.whose(LEASES)),
            tag,
        }
    }

    pub(super) async fn exchange(
        &self,
        pool: &PgPool,
        exchange: &Exchange,
        holder: &HolderInfo,
        floor: Floor,
    ) -> sqlx::Result<Exchanged> {
        let mut attempts = Attempts::default();
        loop {
            let exchanged = shielded(self.exchange_once(pool, exchange, holder, floor));
            match exchanged.await.flatten() {
                Err(error) if attempts.go_on(&error) => {}
                answer => return answer,
            }
        }
    }

    async fn exchange_once(
        &self,
        pool: &PgPool,
        exchange: &Exchange,
        holder: &HolderInfo,
        floor: Floor,
    ) -> sqlx::Result<Exchanged> {
        let mut exchanged = Exchanged::unknown(exchange);
        let mut transaction = Transaction::begin(pool, BEGINNING).await?;
        if !exchange.give_back.is_empty() {
            let leases = &exchange.give_back;
            self.give_back(&mut transaction, leases, &mut exchanged)
                .await?;
        }
        if !exchange.claims.is_empty() {
            let claims = &exchange.claims;
            let take = self.take_by(floor);
            self.take(&mut transaction, take, claims, holder, &mut exchanged)
                .await?;
        }
        transaction.commit().await?;
        Ok(exchanged)
    }

    async fn give_back(
        &self,
        transaction: &mut Transaction,
        leases: &[GiveBack],
        exchanged: &mut Exchanged,
    ) -> sqlx::Result<()> {
        let update = by_leases(&self.give_back, leases.iter().map(parts_of_give_back));
        self.read(transaction, update, exchanged).await?;
        if exchanged.given_back.contains(&GivenBack::NotOurs) {
            let look = by_leases(&self.still_ours, leases.iter().map(parts_of_give_back));
            self.read(transaction, look, exchanged).await?;
        }
        Ok(())
    }

    fn take_by(&self, floor: Floor) -> &SqlStr {
        match floor {
            Floor::Timeline => &self.take,
            Floor::Clock => &self.take_by_clock,
        }
    }

    async fn take(
        &self,
        transaction: &mut Transaction,
        statement: &SqlStr,
        claims: &[Claim],
        holder: &HolderInfo,
        exchanged: &mut Exchanged,
    ) -> sqlx::Result<()> {
        let take = by_claims(statement, claims, holder);
        self.read(transaction, take, exchanged).await?;
        if exchanged.has_vanished() {
            let look = by_names(&self.as_they_are, claims);
            self.read(transaction, look, exchanged).await?;
        }
        if exchanged.has_vanished() {
            // the first time that the key is used
            let insert = by_names(&self.insert_missing, claims);
            self.rows(transaction, insert).await?;
            let take = by_claims(statement, claims, holder);
            self.read(transaction, take, exchanged).await?;
            let look = by_names(&self.as_they_are, claims);
            self.read(transaction, look, exchanged).await?;
        }
        Ok(())
    }

    async fn read(
        &self,
        transaction: &mut Transaction,
        statement: Statement<'_>,
        exchanged: &mut Exchanged,
    ) -> sqlx::Result<()> {
        let rows = self.rows(transaction, statement).await?;
        rows.iter()
            .try_for_each(|row| read_exchanged(row, exchanged))
    }

    pub(super) async fn renew(
        &self,
        pool: &PgPool,
        renewals: &[Renewal],
    ) -> sqlx::Result<Vec<Renewed>> {
        let mut attempts = Attempts::default();
        loop {
            match shielded(self.renew_once(pool, renewals)).await.flatten() {
                Err(error) if attempts.go_on(&error) => {}
                answer => return answer,
            }
        }
    }

    async fn renew_once(&self, pool: &PgPool, renewals: &[Renewal]) -> sqlx::Result<Vec<Renewed>> {
        let mut renewed = vec![Renewed::Removed; renewals.len()];
        let mut transaction = Transaction::begin(pool, BEGINNING).await?;
        for sql in [&self.renew, &self.whose] {
            let statement = by_leases(sql, renewals.iter().map(parts_of_renewal));
            for row in &self.rows(&mut transaction, statement).await? {
                read_renewed(row, &mut renewed)?;
            }
            if renewed.iter().all(|renewed| *renewed == Renewed::Done) {
                break;
            }
        }
        transaction.commit().await?;
        Ok(renewed)
    }

    /// The rows of our statement, and an error where it was another.
    async fn rows(
        &self,
        transaction: &mut Transaction,
        statement: Statement<'_>,
    ) -> sqlx::Result<Vec<PgRow>> {
        let mut rows = statement.fetch_all(transaction.connection()?).await?;
        let is_tag = |row: &PgRow| row.try_get::<&str, _>(0).is_ok_and(|kind| kind == self.tag);
        let before = rows.len();
        rows.retain(|row| !is_tag(row));
        if rows.len() + 1 == before {
            Ok(rows)
        } else {
            Err(sqlx::Error::Decode(Box::new(Foreign)))
        }
    }
}

type Statement<'a> = Query<'a, Postgres, PgArguments>;

fn tagged(sql: &str, row: &str) -> SqlStr {
    // nothing but the table's name is written into it
    AssertSqlSafe(Arc::<str>::from(format!("{sql} union all select {row}"))).into_sql_str()
}

/// Row, owner, microseconds.
type Parts<'a> = (&'a str, &'a str, i64);

fn parts_of_give_back(item: &GiveBack) -> Parts<'_> {
    let micros = micros(item.hold_at_least);
    (&item.lease.row, &item.lease.owner.0, micros)
}

fn parts_of_renewal(renewal: &Renewal) -> Parts<'_> {
    let lease = &renewal.lease;
    (&lease.row, &lease.owner.0, micros(renewal.ttl))
}

fn by_leases<'a>(sql: &SqlStr, leases: impl Iterator<Item = Parts<'a>>) -> Statement<'a> {
    let (mut names, mut owners, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for (name, owner, micros) in leases {
        names.push(name);
        owners.push(owner);
        times.push(micros);
    }
    sqlx::query(sql.clone())
        .bind(indices(names.len()))
        .bind(names)
        .bind(owners)
        .bind(times)
}

fn by_names<'a>(sql: &SqlStr, claims: &'a [Claim]) -> Statement<'a> {
    let names: Vec<&str> = claims.iter().map(|claim| &*claim.row).collect();
    sqlx::query(sql.clone())
        .bind(indices(names.len()))
        .bind(names)
}

fn by_claims<'a>(sql: &SqlStr, claims: &'a [Claim], holder: &'a HolderInfo) -> Statement<'a> {
    let requests = claims.iter().map(|claim| claim.request);
    let requests: Vec<i64> = requests
        .map(|i| i64::try_from(i).unwrap_or_default())
        .collect();
    let texts = |text: fn(&Claim) -> &str| claims.iter().map(text).collect::<Vec<_>>();
    let options = |text: fn(&Claim) -> Option<&str>| claims.iter().map(text).collect::<Vec<_>>();
    let times: Vec<i64> = claims.iter().map(|claim| micros(claim.ttl)).collect();
    sqlx::query(sql.clone())
        .bind(indices(claims.len()))
        .bind(requests)
        .bind(texts(|claim| &claim.row))
        .bind(texts(|claim| &claim.owner.0))
        .bind(times)
        .bind(options(|claim| claim.label.as_deref()))
        .bind(options(|claim| claim.payload.as_deref()))
        .bind(&*holder.host)
        .bind(i64::from(holder.pid))
}

fn indices(count: usize) -> Vec<i32> {
    (0..).take(count).collect()
}

fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Exchanged {
    fn has_vanished(&self) -> bool {
        self.claimed.contains(&Claimed::Vanished)
    }
}

/// Another client's statement answered.
#[derive(Debug)]
struct Foreign;

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another client's statement was run")
    }
}

impl std::error::Error for Foreign {}

/// What the server says of a name that leads to no statement of ours: there is none, another client
/// made one, or one with other parameters.
const MIXED_UP: [&str; 3] = ["26000", "42P05", "08P01"];

pub(super) fn failure(error: sqlx::Error, operation: &'static str) -> Error {
    let code = error.as_database_error().and_then(DatabaseError::code);
    let is_foreign = matches!(&error, sqlx::Error::Decode(source) if source.is::<Foreign>());
    let is_mixed_up =
        code.is_some_and(|code| MIXED_UP.contains(&&*code)) && !is_refused_at_start(&error);
    if is_foreign || is_mixed_up {
        return Error::InvalidOption {
            option: "protocol",
            reason: format!(
                "the connection goes through a transaction pooler, where prepared \
                 statements do not work ({error}); leave the option out, or connect directly"
            ),
        };
    }
    pool_failure(error, operation)
}

/// A pooler's word on start-up parameters and its limits has the same code as a mix-up, and comes
/// without a statement.
fn is_refused_at_start(error: &sqlx::Error) -> bool {
    let message = error.as_database_error().map(DatabaseError::message);
    message.is_some_and(|message| !message.starts_with("bind message"))
        && error
            .as_database_error()
            .and_then(DatabaseError::code)
            .as_deref()
            == Some("08P01")
}
