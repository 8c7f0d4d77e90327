mod account;
mod binaries;
mod cluster;
mod container;
mod local;
mod postmaster;
mod scratch;
mod source;

use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::task::spawn_blocking;

use self::container::Container;
use self::local::Local;
use self::source::Source;
use crate::database::{TestDatabase, sweep_old_databases};
use crate::signal;

/// How a server is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ends all sessions, and shuts down properly.
    Fast,
    /// Ends all processes at once; the next start recovers.
    Immediate,
}

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
        blocking(Self::shared_blocking).await
    }

    /// As [`shared`](Self::shared), for a test without a runtime.
    #[must_use]
    pub fn shared_blocking() -> Self {
        static SHARED: OnceLock<Result<PostgresServer, String>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| start_shared().map_err(|error| format!("{error:#}")));
        shared.clone().unwrap_or_else(|error| panic!("{error}"))
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
        blocking(move || {
            reported(
                Source::of_private_server()
                    .and_then(|source| launch(source, &settings, Role::Private)),
            )
        })
        .await
    }

    /// Stops a private server.
    pub async fn stop(&self, stop: Stop) {
        self.act(move |local| local.stop(stop)).await;
    }

    /// Starts a private server that was stopped or killed, on its data and port.
    pub async fn start_again(&self) {
        self.act(Local::start_again).await;
    }

    /// Stops a private server and starts it again.
    pub async fn restart(&self, stop: Stop) {
        self.stop(stop).await;
        self.start_again().await;
    }

    /// Kills every process of a private server with `kill -9`.
    pub async fn kill(&self) {
        self.act(Local::kill).await;
    }

    /// Pauses every process of a private server (SIGSTOP): as if its machine hung. Its port still
    /// takes connections, and nobody answers.
    pub fn pause(&self) {
        // The postmaster first, so that no backend is born meanwhile.
        signal::send_all(&self.processes(), Signal::STOP);
    }

    /// Lets every process of a private server go on (SIGCONT).
    pub fn resume(&self) {
        signal::send_all(&self.processes(), Signal::CONT);
    }

    /// Pauses one backend of a private server, by its `pg_backend_pid()`.
    pub fn pause_backend(&self, pid: i32) {
        signal::pause(self.backend(pid));
    }

    /// Lets one backend of a private server go on.
    pub fn resume_backend(&self, pid: i32) {
        signal::resume(self.backend(pid));
    }

    /// Kills one backend of a private server with `kill -9`. The server then ends all others and
    /// recovers.
    pub fn kill_backend(&self, pid: i32) {
        signal::kill(self.backend(pid));
    }

    /// The pids of a private server's processes, the postmaster first; empty where it does not run.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        self.local().processes()
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

    fn local(&self) -> &Local {
        assert!(
            self.role == Role::Private,
            "faults are for private servers, which PostgresServer::start makes; this one is shared",
        );
        match &*self.kind {
            Kind::Local(local) => local,
            Kind::Url(_) | Kind::Container(_) => panic!(
                "only a server of local binaries can be stopped, paused or killed; \
                 apt-get install postgresql brings them"
            ),
        }
    }

    fn backend(&self, pid: i32) -> i32 {
        assert!(
            self.processes().contains(&pid),
            "{pid} is no process of this server"
        );
        pid
    }

    async fn act(&self, action: impl FnOnce(&Local) -> Result<()> + Send + 'static) {
        let server = self.clone();
        blocking(move || reported(action(server.local()))).await;
    }
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
        Source::Container => {
            Kind::Container(Container::start(settings).map_err(source::nothing_found)?)
        }
    };
    Ok(PostgresServer {
        kind: Arc::new(kind),
        role,
    })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn reported<T>(outcome: Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("{error:#}"))
}
