//! The table: made where it is missing, and looked over where it is not.

use sqlock_core::{Error, Result};
use sqlx::{Row, postgres::PgRow};

use super::{NAME, connection, literal::Text, pool_failure, table_name::TableName};

const MIGRATION: &str = include_str!("../../migrations/postgres/0001_leases.sql");

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

pub(super) async fn create(pool: &sqlx::PgPool, name: &TableName) -> Result<()> {
    for _ in 0..ATTEMPTS {
        if exists(pool, name).await? {
            return check(pool, name).await;
        }
        match connection::run(pool, migration(name)).await {
            Ok(_) => {}
            Err(error) if lost_the_race(&error) => {}
            Err(error) => return Err(pool_failure(error, "create the table")),
        }
    }
    check(pool, name).await
}

/// The shipped migration, with this table's names.
pub(super) fn migration(name: &TableName) -> String {
    MIGRATION
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
async fn exists(pool: &sqlx::PgPool, name: &TableName) -> Result<bool> {
    let sql = format!(
        "select pg_catalog.to_regclass({}) is not null and pg_catalog.to_regclass({}) is not null",
        Text(&name.quoted()),
        Text(&name.quoted_sequence())
    );
    let failed = |error| pool_failure(error, "look for the table");
    let rows = connection::run(pool, sql).await.map_err(failed)?;
    let exists = rows.first().map(|row| row.try_get(0)).transpose();
    Ok(exists.map_err(failed)?.unwrap_or(false))
}

async fn check(pool: &sqlx::PgPool, name: &TableName) -> Result<()> {
    let sql = format!(
        "set local search_path = pg_catalog;
         select attname::text, format_type(atttypid, null) from pg_attribute
         where attrelid = to_regclass({}) and attnum > 0 and not attisdropped",
        Text(&name.quoted())
    );
    let failed = |error| pool_failure(error, "look at the table");
    let rows = connection::run(pool, sql).await.map_err(failed)?;
    let column = |row: &PgRow| Ok((row.try_get(0)?, row.try_get(1)?));
    let found: sqlx::Result<Vec<(String, String)>> = rows.iter().map(column).collect();
    let found = found.map_err(failed)?;
    for (column, kind) in COLUMNS {
        let reason = match found.iter().find(|(name, _)| name == column) {
            Some((_, found)) if found == kind => continue,
            Some((_, found)) => format!("its column {column} is {found} and must be {kind}"),
            None => format!("it has no column {column} ({kind})"),
        };
        return Err(Error::Backend {
            backend: NAME,
            operation: "use the table",
            source: format!("table {} has another shape: {reason}", name.quoted()).into(),
        });
    }
    Ok(())
}
