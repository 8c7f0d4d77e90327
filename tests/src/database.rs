use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::runtime;
use tokio::time::timeout;

use crate::PostgresServer;

const PREFIX: &str = "sqlock_test_";
const DAY: u64 = 24 * 60 * 60;
/// How long a test waits for the end of its database, where somebody else's server keeps it.
const DROP_WAIT: Duration = Duration::from_secs(10);

/// A database of one test's own. Dropped, with whatever is still connected, when the value is.
#[derive(Debug)]
pub struct TestDatabase {
    server: PostgresServer,
    name: String,
}

impl TestDatabase {
    /// A new database on the server that all tests of this process share.
    pub async fn create() -> Self {
        Self::create_on(&PostgresServer::shared().await).await
    }

    pub(crate) async fn create_on(server: &PostgresServer) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // The time comes first: by it the leftovers on a user's server are told.
        let name = format!("{PREFIX}{}_{}_{count}", now(), process::id());
        let mut connection = server.connect().await;
        sqlx::query(AssertSqlSafe(format!(
            "create database {name} template template0"
        )))
        .execute(&mut connection)
        .await
        .expect("a superuser may create a database");
        let _ = connection.close().await;
        Self {
            server: server.clone(),
            name,
        }
    }

    /// The server it is on.
    #[must_use]
    pub fn server(&self) -> &PostgresServer {
        &self.server
    }

    /// Its name, good as an unquoted identifier.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its URL, of a superuser.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url_of(&self.name)
    }

    /// Its URL, as sqlx's options.
    #[must_use]
    pub fn options(&self) -> PgConnectOptions {
        self.url().parse().expect("a server's url is valid")
    }

    /// A connection to it.
    pub async fn connect(&self) -> PgConnection {
        self.options()
            .connect()
            .await
            .expect("the database takes a connection")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (done, is_done) = mpsc::channel();
        let order = Order {
            url: self.server.url(),
            database: self.name.clone(),
            done,
        };
        if janitor().send(order).is_ok() && self.server.outlives_us() {
            let _ = is_done.recv_timeout(DROP_WAIT);
        }
    }
}

/// Drops the databases that killed test processes left on a user's server.
pub(crate) fn sweep_old_databases(server: &PostgresServer) -> Result<()> {
    let url = server.url();
    let sweep = async move {
        let mut connection = PgConnection::connect(&url)
            .await
            .context("cannot connect to SQLOCK_TEST_POSTGRES_URL")?;
        let names: Vec<String> =
            sqlx::query_scalar("select datname from pg_database where starts_with(datname, $1)")
                .bind(PREFIX)
                .fetch_all(&mut connection)
                .await?;
        for name in names.iter().filter(|name| is_old(name)) {
            // Another process may sweep at the same time.
            let _ = drop_database(&mut connection, name).await;
        }
        Ok(())
    };
    // The caller may be inside a runtime, which does not let another be blocked on.
    thread::spawn(|| own_runtime().block_on(sweep))
        .join()
        .expect("the sweep does not panic")
}

struct Order {
    url: String,
    database: String,
    done: mpsc::Sender<()>,
}

/// Drops databases on a thread of its own: the test's runtime may be gone.
fn janitor() -> &'static mpsc::Sender<Order> {
    static JANITOR: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    JANITOR.get_or_init(|| {
        let (orders, queue) = mpsc::channel::<Order>();
        thread::spawn(move || {
            let runtime = own_runtime();
            for order in queue {
                // Best effort: the server may be stopped, or gone.
                let _ = runtime.block_on(async { timeout(DROP_WAIT, carry_out(&order)).await });
                let _ = order.done.send(());
            }
        });
        orders
    })
}

async fn carry_out(order: &Order) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(&order.url).await?;
    drop_database(&mut connection, &order.database).await?;
    connection.close().await
}

async fn drop_database(connection: &mut PgConnection, name: &str) -> sqlx::Result<()> {
    let statement = format!("drop database if exists {name} with (force)");
    sqlx::query(AssertSqlSafe(statement))
        .execute(connection)
        .await?;
    Ok(())
}

fn is_old(name: &str) -> bool {
    let time = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split('_').next())
        .and_then(|time| time.parse().ok());
    time.is_some_and(|time: u64| time + DAY < now())
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970")
        .as_secs()
}

fn own_runtime() -> runtime::Runtime {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built")
}
