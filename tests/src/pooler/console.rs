use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _};

use super::PgBouncer;

/// A row of `SHOW POOLS`: the pool of one database and user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The database.
    pub database: String,
    /// The user.
    pub user: String,
    /// Clients that are linked to a server connection, or idle with nothing to wait for.
    pub clients_active: usize,
    /// Clients that wait for a server connection.
    pub clients_waiting: usize,
    /// Server connections that are linked to a client.
    pub servers_active: usize,
    /// Server connections that are free.
    pub servers_idle: usize,
}

/// A row of `SHOW CLIENTS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolerClient {
    /// The database.
    pub database: String,
    /// The user.
    pub user: String,
    /// `active`, `waiting` …
    pub state: String,
    /// Whether it is linked to a server connection.
    pub has_server: bool,
}

/// What is asked of its admin console.
impl PgBouncer {
    /// Its pools, without the console's own.
    pub async fn show_pools(&self) -> Vec<Pool> {
        let rows = self.show("show pools").await;
        rows.iter()
            .filter(|row| is_of_users(row))
            .map(pool)
            .collect()
    }

    /// Its clients, without those of the console.
    pub async fn show_clients(&self) -> Vec<PoolerClient> {
        let rows = self.show("show clients").await;
        rows.iter()
            .filter(|row| is_of_users(row))
            .map(client)
            .collect()
    }

    /// Waits until no server connection is in use, and then keeps clients waiting (`PAUSE`).
    pub async fn pause(&self) {
        self.tell("pause").await;
    }

    /// Ends [`pause`](Self::pause) (`RESUME`).
    pub async fn resume(&self) {
        self.tell("resume").await;
    }

    /// Reads the configuration again (`RELOAD`), and forgets what [`set`](Self::set) has changed.
    pub async fn reload(&self) {
        self.tell("reload").await;
    }

    /// Closes each server connection once its client has done with it (`RECONNECT`).
    pub async fn reconnect(&self) {
        self.tell("reconnect").await;
    }

    /// Changes a setting of the running pooler (`SET`).
    pub async fn set(&self, name: &str, value: &str) {
        self.tell(&format!("set {name} = '{value}'")).await;
    }

    /// Does any other command of the admin console.
    pub async fn tell(&self, command: &str) {
        let mut console = self.console().await;
        let outcome = console.execute(sqlx::raw_sql(AssertSqlSafe(command))).await;
        outcome.unwrap_or_else(|error| panic!("{command}: {error}"));
        close(console).await;
    }

    async fn show(&self, command: &str) -> Vec<PgRow> {
        let mut console = self.console().await;
        let rows = console
            .fetch_all(sqlx::raw_sql(AssertSqlSafe(command)))
            .await;
        let rows = rows.unwrap_or_else(|error| panic!("{command}: {error}"));
        close(console).await;
        rows
    }

    async fn console(&self) -> PgConnection {
        self.connect("pgbouncer").await
    }
}

fn pool(row: &PgRow) -> Pool {
    Pool {
        database: text(row, "database"),
        user: text(row, "user"),
        clients_active: number(row, "cl_active"),
        clients_waiting: number(row, "cl_waiting"),
        servers_active: number(row, "sv_active"),
        servers_idle: number(row, "sv_idle") + number(row, "sv_used"),
    }
}

fn client(row: &PgRow) -> PoolerClient {
    PoolerClient {
        database: text(row, "database"),
        user: text(row, "user"),
        state: text(row, "state"),
        has_server: !text(row, "link").is_empty(),
    }
}

fn is_of_users(row: &PgRow) -> bool {
    text(row, "database") != "pgbouncer"
}

fn number(row: &PgRow, column: &str) -> usize {
    let text = text(row, column);
    text.parse()
        .unwrap_or_else(|_| panic!("{column} is {text:?}, and should be a number"))
}

/// As it was sent: the types of the console's columns differ by version.
fn text(row: &PgRow, column: &str) -> String {
    let value = row.try_get_raw(column);
    let value = value.unwrap_or_else(|error| panic!("{column}: {error}"));
    let value = value.as_str();
    value.map(ToOwned::to_owned).unwrap_or_default()
}

async fn close(console: PgConnection) {
    console.close().await.expect("the console closes");
}
