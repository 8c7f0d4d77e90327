//! A pooler's mode, more exactly than is needed to refuse it: for a report.

use std::time::Duration;

use sqlx::{PgConnection, Row, postgres::PgConnectOptions};
use tokio::time::sleep;

use super::{
    Pooler, ServerProcess,
    ask::{ask, if_known, rows},
    connection::{End, connect},
    process::process,
};

/// Tries of a new connection to meet the server process of an earlier one.
const REUNIONS: usize = 3;
const REUNION_PAUSE: Duration = Duration::from_millis(20);

/// Tells a pooler's mode more exactly, by connections of its own. Closes `first`.
pub(super) async fn refine(
    pooler: &mut Pooler,
    options: &PgConnectOptions,
    first: PgConnection,
) -> sqlx::Result<()> {
    match pooler {
        Pooler::NotSeen => {
            if outlives(options, first).await? {
                *pooler = Pooler::Session;
            }
        }
        Pooler::Transaction { evidence } => {
            first.end().await;
            if is_statement_mode(options).await? {
                let evidence = evidence.clone();
                *pooler = Pooler::Statement { evidence };
            }
        }
        _ => first.end().await,
    }
    Ok(())
}

/// Whether a transaction pooler lends for a statement only.
async fn is_statement_mode(options: &PgConnectOptions) -> sqlx::Result<bool> {
    let mut connection = connect(options).await?;
    match rows(&mut connection, "begin").await {
        Ok(_) => {
            rows(&mut connection, "rollback").await?;
            connection.end().await;
            Ok(false)
        }
        Err(sqlx::Error::Database(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether the server process of a connection outlives it, and serves the next, as through a pooler
/// in session mode. Closes `connection`.
async fn outlives(options: &PgConnectOptions, mut connection: PgConnection) -> sqlx::Result<bool> {
    let mut met = Vec::from_iter(birth(&mut connection).await?);
    connection.end().await;
    // a pooler may first hand out another, while it cleans the one that was given back
    for _ in 0..REUNIONS {
        let mut next = connect(options).await?;
        let Some(now) = birth(&mut next).await? else {
            return Ok(false);
        };
        next.end().await;
        if met.contains(&now) {
            return Ok(true);
        }
        met.push(now);
        sleep(REUNION_PAUSE).await;
    }
    Ok(false)
}

/// A pid can be used again, at another time.
async fn birth(connection: &mut PgConnection) -> sqlx::Result<Option<(ServerProcess, String)>> {
    let process = process(connection).await?;
    let pid = process.pid;
    let sql = format!(
        "select extract(epoch from a.backend_start)::text \
         from pg_catalog.pg_stat_activity as a \
         where a.pid operator(pg_catalog.=) {pid}"
    );
    let row = if_known(ask(connection, &sql).await)?;
    let began: Option<String> = row.map(|row| row.try_get(0)).transpose()?.flatten();
    Ok(began.map(|began| (process, began)))
}
