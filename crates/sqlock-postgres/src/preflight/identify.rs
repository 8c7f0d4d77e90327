//! What the server says of itself.

use sqlx::{PgConnection, Row};

use super::{
    Engine, LockSupport, Pooler, Report, Role, Version,
    ask::{ask, if_known},
    engine::Known,
};

/// Two round trips. The report has everything still to be looked for marked as not looked for.
pub(super) async fn identify(connection: &mut PgConnection) -> sqlx::Result<Report> {
    let text = version(connection).await?;
    let engine = Engine::of(&text);
    let mut report = Report {
        version: Version { text, number: None },
        engine,
        role: None,
        session_locks: known(&engine.session_locks()),
        transaction_locks: known(&engine.transaction_locks()),
        pooler: Pooler::NotLooked {
            reason: "it was not asked for".to_owned(),
        },
        lock_capacity: None,
        settings: Vec::new(),
        dangers: Vec::new(),
    };
    if report.has_no_locks() {
        return Ok(report);
    }
    let role = ask(
        connection,
        "select pg_catalog.pg_is_in_recovery(), \
                pg_catalog.current_setting('server_version_num')",
    );
    let Some(row) = if_known(role.await)? else {
        return Ok(report);
    };
    report.role = Some(if row.try_get(0)? {
        Role::Standby
    } else {
        Role::Primary
    });
    report.version.number = row.try_get::<&str, _>(1)?.parse().ok();
    Ok(report)
}

impl Report {
    /// Neither of sessions nor of transactions: there is nothing more to find out.
    pub(super) fn has_no_locks(&self) -> bool {
        let is_absent = |support: &LockSupport| matches!(support, LockSupport::Absent { .. });
        is_absent(&self.session_locks) && is_absent(&self.transaction_locks)
    }
}

/// Qualified, as a role's `search_path` may put somebody's own function first; not every engine
/// knows the schema.
async fn version(connection: &mut PgConnection) -> sqlx::Result<String> {
    for sql in ["select pg_catalog.version()", "select version()"] {
        let row = if_known(ask(connection, sql).await)?;
        if let Some(text) = row.map(|row| row.try_get(0)).transpose()? {
            return Ok(text);
        }
    }
    Ok(String::new())
}

fn known(known: &Known) -> LockSupport {
    match known {
        Known::Genuine => LockSupport::Genuine,
        Known::Absent(reason) => LockSupport::Absent {
            reason: (*reason).to_owned(),
        },
        Known::ToBeTested => LockSupport::Untested {
            reason: "it takes two connections".to_owned(),
        },
    }
}
