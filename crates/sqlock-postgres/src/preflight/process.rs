//! Which process of which server answers.

use sqlx::{PgConnection, Row};

use super::{
    ServerProcess,
    ask::{ask, if_known},
};

/// Asks the server which of its processes this is.
///
/// The pid alone would not do: behind a balancer two servers may well have one of the same number.
/// Of an engine that does not know the rest, it is all there is.
pub(super) async fn process(connection: &mut PgConnection) -> sqlx::Result<ServerProcess> {
    let row = ask(
        connection,
        "select pg_catalog.pg_backend_pid(), \
                pg_catalog.host(pg_catalog.inet_server_addr()), \
                pg_catalog.inet_server_port(), \
                extract(epoch from pg_catalog.pg_postmaster_start_time())::text",
    );
    let Some(row) = if_known(row.await)? else {
        let row = ask(connection, "select pg_backend_pid()").await?;
        return Ok(ServerProcess {
            pid: row.try_get(0)?,
            address: String::new(),
            server_started: String::new(),
        });
    };
    let host: Option<String> = row.try_get(1)?;
    let port: Option<i32> = row.try_get(2)?;
    let address = match (host, port) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        _ => String::new(),
    };
    Ok(ServerProcess {
        pid: row.try_get(0)?,
        address,
        server_started: row.try_get::<Option<String>, _>(3)?.unwrap_or_default(),
    })
}
