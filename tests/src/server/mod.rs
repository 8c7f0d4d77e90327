pub(crate) mod account;
mod binaries;
mod cluster;
mod container;
pub(crate) mod daemon;
mod faults;
pub(crate) mod kept;
mod local;
pub(crate) mod port;
mod postmaster;
pub(crate) mod scratch;
mod source;

use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Error, Result};
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::task::spawn_blocking;

use self::container::Container;
pub use self::faults::Stop;
use self::local::Local;
use self::source::Source;
use crate::database::{TestDatabase, sweep_old_databases};

/// A PostgreSQL server. Cheap to clone; a private one is stopped and removed with its last clone,
/// and every one when this process dies, even by `kill -9`.
#[derive(Debug, Clone)]
pub struct PostgresServer {
    kind: Arc<Kind>,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Shared,
    Private,
}

#[derive(Debug)]
enum Kind {
    Url(String),
    Local(Local),
    Container(Container),
}

impl PostgresServer {
    /// The server that all tests of this process share; started by whoever asks first.
    ///
    /// Databases are to be had from it, faults are not: see [`start`](Self::start).
    pub async fn shared() -> Self {
        blocking(shared).await
    }

    /// A private server, with settings of its own: `&[("max_locks_per_transaction", "512")]`.
    ///
    /// It is made of local binaries, or else runs in a container, which cannot be stopped, started
    /// again, paused or killed.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        let settings: Vec<_> = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        blocking(move || launch(Source::of_private_server()?, &settings, Role::Private)).await
    }

    /// A server of its own that follows this private one.
    pub(crate) async fn start_follower(&self) -> Self {
        // Refused here rather than on the thread, so that it is the test that panics.
        self.local();
        let primary = self.clone();
        let local = blocking(move || primary.local().start_standby()).await;
        Self {
            kind: Arc::new(Kind::Local(local)),
            role: Role::Private,
        }
    }

    /// A new database of this server.
    pub async fn database(&self) -> TestDatabase {
        TestDatabase::create_on(self).await
    }

    /// The URL of the database that server administration goes through; of a superuser.
    #[must_use]
    pub fn url(&self) -> String {
        match &*self.kind {
            Kind::Url(url) => url.clone(),
            Kind::Local(local) => {
                format!("postgres://postgres@127.0.0.1:{}/postgres", local.port())
            }
            Kind::Container(container) => container.url().to_owned(),
        }
    }

    /// A superuser's connection to the database of [`url`](Self::url).
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url())
            .await
            .expect("the server takes a connection")
    }

    /// The URL of another database of this server.
    pub(crate) fn url_of(&self, database: &str) -> String {
        let url = self.url();
        let (base, query) = url
            .split_once('?')
            .map_or((url.as_str(), None), |(base, query)| (base, Some(query)));
        let authority = base.find("://").map_or(0, |at| at + 3);
        let end = base[authority..]
            .find('/')
            .map_or(base.len(), |at| authority + at);
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}/{database}{query}", &base[..end])
    }

    /// Whether the server outlives this process, and its databases with it.
    pub(crate) fn outlives_us(&self) -> bool {
        matches!(*self.kind, Kind::Url(_))
    }
}

fn shared() -> Result<PostgresServer> {
    static SHARED: OnceLock<Result<PostgresServer, String>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| start_shared().map_err(|error| format!("{error:#}")));
    shared.clone().map_err(Error::msg)
}

fn start_shared() -> Result<PostgresServer> {
    let server = launch(Source::of_shared_server()?, &[], Role::Shared)?;
    if server.outlives_us() {
        sweep_old_databases(&server)?;
    }
    Ok(server)
}

fn launch(source: Source, settings: &[(String, String)], role: Role) -> Result<PostgresServer> {
    let kind = match source {
        Source::Url(url) => {
            let _: PgConnectOptions = url
                .parse()
                .context("SQLOCK_TEST_POSTGRES_URL is no url of postgresql")?;
            Kind::Url(url)
        }
        Source::Local(binaries) => Kind::Local(Local::start(binaries, settings)?),
        Source::Container => Kind::Container(
            Container::start(settings).map_err(|error| source::nothing_found(&error))?,
        ),
    };
    Ok(PostgresServer {
        kind: Arc::new(kind),
        role,
    })
}

/// Does blocking work away from the test's runtime; the test itself panics where it fails.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> T {
    let outcome = spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(error.into()));
    outcome.unwrap_or_else(|error| panic!("{error:#}"))
}
