use std::time::Duration;

use sqlock_core::Result;
use sqlx::{PgConnection, Row, postgres::PgConnectOptions};

use super::{
    LockSupport, Pooler, Report, Role,
    ask::{ask, if_known},
    connection::{End, connect},
    dangers::{Context, dangers},
    identify::identify,
    pooler,
    refine::refine,
    self_test::{Kind, self_test},
    settings::{self, Settings},
};
use crate::{Failure, plain_options};

/// How long a report waits for a second connection.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// What decides about session locks; whatever refuses them ends the examination.
    SessionLocks,
    /// All that can be told.
    Report,
}

/// Finds out what there is to know of the server behind these options; refuses nothing.
///
/// It opens up to four connections, two at a time, and closes them. No lock is taken on a server
/// that says that it is PostgreSQL; on another, one on a random key for a moment.
///
/// # Errors
///
/// Those of the first connection, and of any that breaks.
///
/// # Cancel safety
///
/// Safe: the connections are closed.
pub async fn examine(options: &PgConnectOptions) -> sqlx::Result<Report> {
    report(options, Depth::Report, PATIENCE).await
}

/// Refuses a server, or a way to it, on which session locks would not be what they say.
///
/// # Errors
///
/// As [`Report::check_session_locks`], and those of the connections.
///
/// # Cancel safety
///
/// As [`look`].
pub async fn session_locks(options: &PgConnectOptions, patience: Duration) -> Result<Report> {
    let report = look(options, patience).await?;
    report.check_session_locks()?;
    Ok(report)
}

/// Finds out what decides about session locks; refuses nothing.
///
/// A few round trips on two connections. Where a second is not to be had within `patience`, or the
/// server refuses it, the look for a pooler is not made: then
/// [`Report::doubt`] says so, and it is for the caller to tell.
///
/// # Errors
///
/// Those of the connections.
///
/// # Cancel safety
///
/// Safe: the connections are closed.
pub async fn look(options: &PgConnectOptions, patience: Duration) -> Result<Report> {
    let report = report(options, Depth::SessionLocks, patience).await;
    report.map_err(|error| Failure::of(error).error("session", "connect"))
}

async fn report(
    options: &PgConnectOptions,
    depth: Depth,
    patience: Duration,
) -> sqlx::Result<Report> {
    let options = plain_options(options.clone());
    let mut first = connect(&options).await?;
    let mut report = identify(&mut first).await?;
    let is_decided = report.check_session_locks().is_err();
    if report.has_no_locks() || is_decided && depth == Depth::SessionLocks {
        first.end().await;
        return Ok(report);
    }
    report.settings = settings::read(&mut first).await?;
    report.lock_capacity = Settings(&report.settings).lock_capacity();
    let mut context = context(&mut first).await?;
    if report.role == Some(Role::Standby) {
        report.pooler = Pooler::NotLooked {
            reason: "the server is a standby".to_owned(),
        };
        first.end().await;
    } else {
        let looked = pooler::look(&options, &mut first, patience).await?;
        let second = looked.second;
        report.pooler = looked.pooler;
        if let Some(mut second) = second {
            test(&mut report, &mut first, &mut second, patience).await?;
            second.end().await;
        }
        if depth == Depth::Report {
            refine(&mut report.pooler, &options, first).await?;
        } else {
            first.end().await;
        }
    }
    context.sees_clients &= !report.pooler.lends();
    report.dangers = dangers(&report.settings, context);
    Ok(report)
}

async fn context(connection: &mut PgConnection) -> sqlx::Result<Context> {
    let sql = "select pg_catalog.inet_server_addr() is not null, \
                      exists (select from pg_catalog.pg_stat_replication)";
    let row = if_known(ask(connection, sql).await)?;
    let flag = |index: usize| match &row {
        Some(row) => row.try_get::<Option<bool>, _>(index),
        None => Ok(None),
    };
    Ok(Context {
        sees_clients: flag(0)?.unwrap_or(false),
        has_replicas: flag(1)?.unwrap_or(false),
    })
}

/// Tries the locks of an engine that is not known: those of sessions only where each connection was
/// seen to have a server process of its own, since otherwise one could be left behind.
async fn test(
    report: &mut Report,
    first: &mut PgConnection,
    second: &mut PgConnection,
    patience: Duration,
) -> sqlx::Result<()> {
    if report.transaction_locks.is_untested() {
        report.transaction_locks = self_test(Kind::Transaction, first, second, patience).await?;
    }
    if !report.session_locks.is_untested() {
        return Ok(());
    }
    if report.pooler == Pooler::NotSeen {
        report.session_locks = self_test(Kind::Session, first, second, patience).await?;
    } else if let LockSupport::Absent { .. } = report.transaction_locks {
        report.session_locks = report.transaction_locks.clone();
    }
    Ok(())
}

impl Pooler {
    /// Whether it lends server processes, so that a connection has none of its own.
    fn lends(&self) -> bool {
        matches!(self, Self::Transaction { .. } | Self::Statement { .. })
    }
}
