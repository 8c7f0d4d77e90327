//! The table: made where it is missing, and looked over where it is not.

use sqlock_core::{Error, Result};
use sqlx::{Row, postgres::PgRow};

use super::{NAME, connection, literal::Text, pool_failure, table_name::TableName};
use crate::store::List;

const LEASES: &str = include_str!("../../migrations/postgres/0001_leases.sql");
const WAITERS: &str = include_str!("../../migrations/postgres/0002_waiters.sql");

const WAITERS_COLUMNS: [(&str, &str); 10] = [
    ("name", "text"),
    ("waiter", "text"),
    ("priority", "smallint"),
    ("ticket", "bigint"),
    ("since", "timestamp with time zone"),
    ("expires_at", "timestamp with time zone"),
    ("listens", "boolean"),
    ("host", "text"),
    ("pid", "bigint"),
    ("label", "text"),
];

const COLUMNS: [(&str, &str); 9] = [
    ("name", "text"),
    ("owner", "text"),
    ("token", "bigint"),
    ("acquired_at", "timestamp with time zone"),
    ("expires_at", "timestamp with time zone"),
    ("host", "text"),
    ("pid", "bigint"),
    ("label", "text"),
    ("payload", "text"),
];

/// Many that create at once meet in the server's own catalogue, whose `if not exists` does not
/// hold then: unique violation, duplicate table, duplicate object, tuple concurrently updated.
const LOST_THE_RACE: [&str; 4] = ["23505", "42P07", "42710", "XX000"];
const ATTEMPTS: u32 = 10;

/// Makes what a backend with these options needs, and no more: a role that may not create goes on
/// with a table from before.
pub(super) async fn create(pool: &sqlx::PgPool, name: &TableName, list: List) -> Result<()> {
    let (leases, sequence) = (name.quoted(), name.quoted_sequence());
    let sql = migration(LEASES, name);
    make(pool, &[&leases, &sequence], &sql).await?;
    check(pool, &leases, &COLUMNS).await?;
    if list != List::None {
        let waiters = name.quoted_waiters();
        make(pool, &[&waiters], &migration(WAITERS, name)).await?;
        check(pool, &waiters, &WAITERS_COLUMNS).await?;
    }
    Ok(())
}

async fn make(pool: &sqlx::PgPool, names: &[&str], migration: &str) -> Result<()> {
    for _ in 0..ATTEMPTS {
        if exist(pool, names).await? {
            return Ok(());
        }
        match connection::run(pool, migration.to_owned()).await {
            Ok(_) => {}
            Err(error) if lost_the_race(&error) => {}
            Err(error) => return Err(pool_failure(error, "create the table")),
        }
    }
    Ok(())
}

/// The shipped migration, with this table's names.
fn migration(sql: &str, name: &TableName) -> String {
    sql.replace(
        r#""public"."sqlock_leases_waiters""#,
        &name.quoted_waiters(),
    )
    .replace(r#""public"."sqlock_leases_seq""#, &name.quoted_sequence())
    .replace(r#""public"."sqlock_leases""#, &name.quoted())
}

fn lost_the_race(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| LOST_THE_RACE.contains(&&*code))
}

/// Looked up first: a role that may use the table need not be one that may create it.
async fn exist(pool: &sqlx::PgPool, names: &[&str]) -> Result<bool> {
    let looks = names
        .iter()
        .map(|name| format!("pg_catalog.to_regclass({}) is not null", Text(name)));
    let sql = format!("select {}", looks.collect::<Vec<_>>().join(" and "));
    let failed = |error| pool_failure(error, "look for the table");
    let rows = connection::run(pool, sql).await.map_err(failed)?;
    let exist = rows.first().map(|row| row.try_get(0)).transpose();
    Ok(exist.map_err(failed)?.unwrap_or(false))
}

async fn check(pool: &sqlx::PgPool, table: &str, columns: &[(&str, &str)]) -> Result<()> {
    let sql = format!(
        "set local search_path = pg_catalog;
         select attname::text, format_type(atttypid, null) from pg_attribute
         where attrelid = to_regclass({}) and attnum > 0 and not attisdropped",
        Text(table)
    );
    let failed = |error| pool_failure(error, "look at the table");
    let rows = connection::run(pool, sql).await.map_err(failed)?;
    let column = |row: &PgRow| Ok((row.try_get(0)?, row.try_get(1)?));
    let found: sqlx::Result<Vec<(String, String)>> = rows.iter().map(column).collect();
    let found = found.map_err(failed)?;
    for (column, kind) in columns {
        let reason = match found.iter().find(|(name, _)| name == column) {
            Some((_, found)) if found == kind => continue,
            Some((_, found)) => format!("its column {column} is {found} and must be {kind}"),
            None => format!("it has no column {column} ({kind})"),
        };
        return Err(Error::Backend {
            backend: NAME,
            operation: "use the table",
            source: format!("table {table} has another shape: {reason}").into(),
        });
    }
    Ok(())
}
