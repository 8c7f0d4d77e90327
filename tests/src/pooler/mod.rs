mod builder;
mod config;
mod console;
mod container;
mod faults;
mod local;
mod odyssey;
mod source;

use std::sync::Arc;

use anyhow::Result;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};

pub use self::builder::{PgBouncerBuilder, PoolMode};
use self::config::Config;
pub use self::console::{Pool, PoolerClient};
use self::container::Container;
use self::local::Local;
use self::odyssey::Odyssey;
use self::source::Source;
use crate::server::PostgresServer;
use crate::{TestDatabase, server};

/// A PgBouncer in front of all databases of a server. Cheap to clone; stopped and removed with its
/// last clone, and when this process dies, even by `kill -9`.
///
/// Its settings are the stock ones: no start-up parameter is ignored, and prepared statements are
/// not looked after, unless [`PgBouncer::with`] says otherwise. Clients need no password.
#[derive(Debug, Clone)]
pub struct PgBouncer {
    kind: Arc<Kind>,
    server: PostgresServer,
    user: String,
}

#[derive(Debug)]
enum Kind {
    Local(Local),
    Container(Container),
    Odyssey(Odyssey),
}

impl PgBouncer {
    /// One with stock settings: 20 server connections for each database and user.
    ///
    /// It is made of a local binary, or else runs in a container, which cannot be stopped.
    pub async fn start(server: &PostgresServer, mode: PoolMode) -> Self {
        Self::with(mode).start(server).await
    }

    /// One with settings of its own; started by [`PgBouncerBuilder::start`].
    pub fn with(mode: PoolMode) -> PgBouncerBuilder {
        PgBouncerBuilder::new(mode)
    }

    /// The URL of a database of the server, by way of the pooler.
    ///
    /// Stock PgBouncer refuses what sqlx makes of a URL: it sends `extra_float_digits` unasked. See
    /// [`options`](Self::options).
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let Self { user, .. } = self;
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port())
    }

    /// The same as sqlx's options, without the start-up parameter that stock PgBouncer refuses.
    #[must_use]
    pub fn options(&self, database: &str) -> PgConnectOptions {
        let options: PgConnectOptions = self.url(database).parse().expect("the url is valid");
        options.extra_float_digits(None)
    }

    /// A client of the pooler.
    pub async fn connect(&self, database: &str) -> PgConnection {
        let connection = self.options(database).connect().await;
        connection.unwrap_or_else(|error| panic!("pgbouncer takes no connection: {error}"))
    }

    /// The server behind it.
    #[must_use]
    pub fn server(&self) -> &PostgresServer {
        &self.server
    }

    /// The port that it listens on, at 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        match &*self.kind {
            Kind::Local(local) => local.port(),
            Kind::Container(container) => container.port(),
            Kind::Odyssey(odyssey) => odyssey.port(),
        }
    }

    async fn launch(server: &PostgresServer, config: Config) -> Self {
        let user = config.user().to_owned();
        let kind = server::blocking(move || launch(&config)).await;
        Self {
            kind: Arc::new(kind),
            server: server.clone(),
            user,
        }
    }
}

impl TestDatabase {
    /// The way to this database through a pooler of its server.
    #[must_use]
    pub fn through(&self, pooler: &PgBouncer) -> PgConnectOptions {
        self.check_pooler(pooler);
        pooler.options(self.name())
    }

    /// The URL of this database through a pooler of its server; see [`PgBouncer::url`].
    #[must_use]
    pub fn url_through(&self, pooler: &PgBouncer) -> String {
        self.check_pooler(pooler);
        pooler.url(self.name())
    }

    fn check_pooler(&self, pooler: &PgBouncer) {
        let is_behind = pooler.server.url() == self.server().url();
        assert!(is_behind, "the pooler is in front of another server");
    }
}

fn launch(config: &Config) -> Result<Kind> {
    Ok(match Source::of_pooler()? {
        Source::Local(binary) => Kind::Local(Local::start(binary, config)?),
        Source::Container => Kind::Container(
            Container::start(config).map_err(|error| source::nothing_found(&error))?,
        ),
        Source::Odyssey => Kind::Odyssey(Odyssey::start(config)?),
    })
}
