use sqlock_core::{Error, Result};
use sqlx::{Row, SqliteConnection};

use super::{NAME, connection::failure};

const MIGRATION: &str = include_str!("../../migrations/sqlite/0001_leases.sql");

const COLUMNS: [(&str, &str); 10] = [
    ("name", "TEXT"),
    ("owner", "TEXT"),
    ("token", "INTEGER"),
    ("boot", "TEXT"),
    ("acquired_at", "INTEGER"),
    ("expires_at", "INTEGER"),
    ("host", "TEXT"),
    ("pid", "INTEGER"),
    ("label", "TEXT"),
    ("payload", "TEXT"),
];

/// Within a transaction that has the write lock, so that many can do it at once.
pub(super) async fn create(connection: &mut SqliteConnection) -> Result<()> {
    sqlx::raw_sql(MIGRATION)
        .execute(&mut *connection)
        .await
        .map_err(|error| failure(error, "create the table"))?;
    check(connection).await
}

async fn check(connection: &mut SqliteConnection) -> Result<()> {
    let failed = |error| failure(error, "look at the table");
    let rows = sqlx::query("select name, upper(type) from pragma_table_info('sqlock_leases')")
        .fetch_all(connection)
        .await
        .map_err(failed)?;
    let mut found: Vec<(String, String)> = Vec::new();
    for row in rows {
        found.push((
            row.try_get(0).map_err(failed)?,
            row.try_get(1).map_err(failed)?,
        ));
    }
    for (column, kind) in COLUMNS {
        let reason = match found.iter().find(|(name, _)| name == column) {
            Some((_, found)) if found == kind => continue,
            Some((_, found)) => format!("its column {column} is {found} and must be {kind}"),
            None => format!("it has no column {column} ({kind})"),
        };
        return Err(Error::Backend {
            backend: NAME,
            operation: "use the table",
            source: format!("table sqlock_leases has another shape: {reason}").into(),
        });
    }
    Ok(())
}
