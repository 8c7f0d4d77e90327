//! The tables: made where they are missing, and looked over where they are not.

use sqlock_core::{Error, Result};
use sqlx::SqliteConnection;

use super::{
    NAME,
    connection::{Borrowed, Slot},
    failure::{Failure, told},
    host_clock::{BOOT_ID, HostClock},
    statements::Statements,
};
use crate::store::List;

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

const WAITERS_COLUMNS: [(&str, &str); 10] = [
    ("name", "TEXT"),
    ("waiter", "TEXT"),
    ("priority", "INTEGER"),
    ("ticket", "INTEGER"),
    ("boot", "TEXT"),
    ("since", "INTEGER"),
    ("expires_at", "INTEGER"),
    ("host", "TEXT"),
    ("pid", "INTEGER"),
    ("label", "TEXT"),
];

const META_COLUMNS: [(&str, &str); 3] =
    [("id", "INTEGER"), ("floor", "INTEGER"), ("clock", "TEXT")];

/// Sees to it that the tables are there, safely by many at once, and tells which clock they go by.
/// Takes no write lock where they are.
pub(super) async fn settle(slot: &Slot, statements: &Statements, list: List) -> Result<HostClock> {
    let mut borrowed = told("open the file", slot.borrow()).await?;
    let found = told("look at the tables", look(&mut borrowed, statements, list)).await?;
    let clock = match found {
        Some(clock) => clock,
        None => {
            told("create the tables", create(&mut borrowed, statements, list)).await?;
            let found = told("look at the tables", look(&mut borrowed, statements, list)).await?;
            found.ok_or_else(|| unusable("its tables vanished while they were made".to_owned()))?
        }
    };
    borrowed.give_back();
    clock
}

/// `None` where something is missing, and otherwise the clock or what is wrong.
async fn look(
    borrowed: &mut Borrowed<'_>,
    statements: &Statements,
    list: List,
) -> Result<Option<Result<HostClock>>, Failure> {
    let connection = &mut borrowed.connection;
    let mode: String = sqlx::query_scalar("pragma journal_mode")
        .fetch_one(&mut *connection)
        .await?;
    if mode != "wal" {
        return Ok(Some(Err(unusable(format!(
            "it stays in journal mode {mode}: the file system has no shared memory for SQLite's \
             log; use a local file"
        )))));
    }
    let mut tables = vec![
        (&statements.table, &COLUMNS[..]),
        (&statements.meta_table, &META_COLUMNS[..]),
    ];
    if list == List::Queue {
        tables.push((&statements.waiters_table, &WAITERS_COLUMNS[..]));
    }
    for (table, columns) in tables {
        match difference(connection, table, columns).await? {
            Difference::None => {}
            Difference::Missing => return Ok(None),
            Difference::Of(what) => {
                let reason = format!("table {table} has another shape: {what}");
                return Ok(Some(Err(unusable(reason))));
            }
        }
    }
    let kind: Option<String> = sqlx::query_scalar(statements.clock.clone())
        .fetch_optional(connection)
        .await?;
    Ok(kind.map(|kind| HostClock::of_kind(&kind).ok_or_else(|| unusable(without_clock(&kind)))))
}

async fn create(
    borrowed: &mut Borrowed<'_>,
    statements: &Statements,
    list: List,
) -> Result<(), Failure> {
    borrowed.begin().await?;
    sqlx::raw_sql(statements.migration.clone())
        .execute(&mut borrowed.connection)
        .await?;
    if list == List::Queue {
        sqlx::raw_sql(statements.waiters_migration.clone())
            .execute(&mut borrowed.connection)
            .await?;
    }
    sqlx::query(statements.first_meta.clone())
        .bind(HostClock::best().kind())
        .execute(&mut borrowed.connection)
        .await?;
    borrowed.commit().await
}

enum Difference {
    None,
    Missing,
    Of(String),
}

async fn difference(
    connection: &mut SqliteConnection,
    table: &str,
    columns: &[(&str, &str)],
) -> Result<Difference, Failure> {
    let found: Vec<(String, String)> =
        sqlx::query_as("select name, upper(type) from pragma_table_info($1)")
            .bind(table)
            .fetch_all(connection)
            .await?;
    if found.is_empty() {
        return Ok(Difference::Missing);
    }
    for (column, kind) in columns {
        match found.iter().find(|(name, _)| name == column) {
            Some((_, found)) if found == kind => {}
            Some((_, found)) => {
                let what = format!("its column {column} is {found} and must be {kind}");
                return Ok(Difference::Of(what));
            }
            None => {
                return Ok(Difference::Of(format!(
                    "it has no column {column} ({kind})"
                )));
            }
        }
    }
    Ok(Difference::None)
}

fn without_clock(kind: &str) -> String {
    match HostClock::best().kind() {
        best if best != kind => format!(
            "its leases go by the clock `{kind}`, which this process cannot read; let it read \
             {BOOT_ID} (of systemd's settings, `ProcSubset=pid` hides it)"
        ),
        _ => format!("its leases go by a clock that this version does not know: {kind}"),
    }
}

fn unusable(reason: String) -> Error {
    Error::Backend {
        backend: NAME,
        operation: "use the file",
        source: reason.into(),
    }
}
