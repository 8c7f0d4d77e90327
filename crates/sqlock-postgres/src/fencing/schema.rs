//! Makes the tables and the sequence.

use sqlock_core::{Error, FencingFault, Result};
use sqlx::{AssertSqlSafe, Executor, PgConnection, error::DatabaseError};

use super::{fault, look::Look, names::Names};
use crate::Failure;

/// In errors.
pub(super) const NAME: &str = "fencing";

const MIGRATION: &str = include_str!("../../migrations/0001_fencing.sql");
const BEFORE_15: &str = include_str!("../../migrations/before_15/0001_fencing.sql");

/// Many that create at once meet in the server's catalogue: unique violation, duplicate table,
/// duplicate object, tuple concurrently updated.
const LOST_THE_RACE: [&str; 4] = ["23505", "42P07", "42710", "XX000"];
const ATTEMPTS: u32 = 10;

/// All of it in one transaction: whoever finds one of the tables finds them all.
pub(super) async fn create(connection: &mut PgConnection, names: &Names) -> Result<()> {
    let failed = |error| fault::error(names, NAME, "create the tables", &Failure::of(error));
    for _ in 0..ATTEMPTS {
        let look = Look::take(&mut *connection, names).await.map_err(failed)?;
        if !look.is_empty() {
            return look.kind().map(drop).map_err(refused);
        }
        let sql = migration(names, look.version);
        match connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await {
            Err(error) if !lost_the_race(&error) => return Err(failed(error)),
            _ => {}
        }
    }
    let look = Look::take(&mut *connection, names).await.map_err(failed)?;
    look.kind().map(drop).map_err(refused)
}

/// The shipped one, with these names.
fn migration(names: &Names, version: i32) -> String {
    let shipped = if version >= 150_000 {
        MIGRATION
    } else {
        BEFORE_15
    };
    shipped
        .replace(r#""public"."sqlock_fencing_seq""#, &names.sequence)
        .replace(r#""public"."sqlock_fencing_now""#, &names.now)
        .replace(r#""public"."sqlock_fencing""#, &names.durable)
}

fn lost_the_race(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| LOST_THE_RACE.contains(&&*code))
}

fn refused(fault: FencingFault) -> Error {
    Error::Fencing {
        backend: NAME,
        fault,
        source: None,
    }
}
