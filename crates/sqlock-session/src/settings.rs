//! What a lock's session needs of the server's settings.
//!
//! Set by SQL after connecting: as start-up options an old server or a pooler could refuse them.

use std::time::Duration;

use sqlx::{
    Executor, Postgres,
    postgres::{PgConnectOptions, PgListener},
};

use crate::options::SessionOptions;

/// First of all: the role's own time limit may be shorter than what comes next takes, and its
/// `search_path` may put somebody's functions before the server's own.
pub(crate) async fn prepare<'c>(
    connection: impl Executor<'c, Database = Postgres>,
) -> sqlx::Result<()> {
    connection
        .execute("set statement_timeout = 0; set search_path = pg_catalog")
        .await?;
    Ok(())
}

/// Sets what this server knows of, and tells of what it refuses: locks work without, but those of
/// a client that vanished stay longer.
pub(crate) async fn apply(
    listener: &mut PgListener,
    options: &SessionOptions,
    connect: &PgConnectOptions,
) -> sqlx::Result<()> {
    let (names, values): (Vec<_>, Vec<_>) = wanted(options, connect).into_iter().unzip();
    let all = set(listener, &names, &values).await;
    let Err(sqlx::Error::Database(_)) = all else {
        return all;
    };
    for (name, value) in names.into_iter().zip(values) {
        match set(listener, &[name], &[value]).await {
            Err(sqlx::Error::Database(error)) => {
                tracing::warn!(setting = name, %error, "the server refused a setting");
            }
            other => other?,
        }
    }
    Ok(())
}

async fn set(listener: &mut PgListener, names: &[&str], values: &[String]) -> sqlx::Result<()> {
    sqlx::query(
        "select set_config(w.name, w.value, false) \
         from unnest($1::text[], $2::text[]) as w(name, value) \
         join pg_settings as known on known.name = w.name",
    )
    .bind(names)
    .bind(values)
    .execute(listener)
    .await?;
    Ok(())
}

fn wanted(options: &SessionOptions, connect: &PgConnectOptions) -> Vec<(&'static str, String)> {
    // three times the longest that a holder needs to learn that the server is out of reach
    let vanished = 3 * (options.heartbeat.interval + options.heartbeat.limit);
    let seconds = |duration: Duration| duration.as_secs().max(1);
    let mut wanted = vec![
        ("lock_timeout", milliseconds(options.lock_timeout)),
        // the session is idle by nature, and bounds its own statements
        ("statement_timeout", "0".to_owned()),
        ("idle_session_timeout", "0".to_owned()),
        ("idle_in_transaction_session_timeout", "0".to_owned()),
        ("transaction_timeout", "0".to_owned()),
        // nobody's functions of the same names
        ("search_path", "pg_catalog".to_owned()),
        // a notification is a commit, and need not survive a crash
        ("synchronous_commit", "off".to_owned()),
        ("default_transaction_isolation", "read committed".to_owned()),
        ("client_connection_check_interval", "1s".to_owned()),
        ("tcp_keepalives_idle", seconds(vanished / 2).to_string()),
        ("tcp_keepalives_interval", seconds(vanished / 6).to_string()),
        ("tcp_keepalives_count", "3".to_owned()),
        ("tcp_user_timeout", milliseconds(vanished)),
    ];
    let name = application_name(options, connect);
    wanted.push(("application_name", name.to_owned()));
    wanted
}

pub(crate) fn application_name<'a>(
    options: &'a SessionOptions,
    connect: &'a PgConnectOptions,
) -> &'a str {
    let chosen = options.application_name.as_deref();
    chosen
        .or_else(|| connect.get_application_name())
        .unwrap_or("sqlock")
}

fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis().max(1))
}
