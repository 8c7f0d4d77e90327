use std::time::Duration;

use super::PgBouncer;
use super::config::Config;
use crate::PostgresServer;

/// When a server connection goes back to the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolMode {
    /// When its client disconnects.
    Session,
    /// At the end of each transaction.
    Transaction,
    /// After each statement; transactions of more than one are refused.
    Statement,
}

impl PoolMode {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        }
    }
}

/// A PgBouncer to be; made by [`PgBouncer::with`].
#[derive(Debug, Clone)]
#[must_use = "a pooler runs once it is started"]
pub struct PgBouncerBuilder {
    settings: Vec<(String, String)>,
}

impl PgBouncerBuilder {
    pub(super) fn new(mode: PoolMode) -> Self {
        let builder = Self {
            settings: Vec::new(),
        };
        builder.setting("pool_mode", mode.name())
    }

    /// How many server connections there are for each database and user (`default_pool_size`).
    pub fn pool_size(self, size: u32) -> Self {
        self.setting("default_pool_size", &size.to_string())
    }

    /// How many clients it takes (`max_client_conn`); 100 by default.
    pub fn max_client_conn(self, count: u32) -> Self {
        self.setting("max_client_conn", &count.to_string())
    }

    /// How long a client waits for a server connection before it is disconnected
    /// (`query_wait_timeout`, in whole seconds); 120 s by default.
    pub fn query_wait_timeout(self, timeout: Duration) -> Self {
        self.setting("query_wait_timeout", &timeout.as_secs().to_string())
    }

    /// Any other line of the section `pgbouncer` of its configuration.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts it in front of all databases of `server`.
    pub async fn start(self, server: &PostgresServer) -> PgBouncer {
        let config = Config::new(&server.url(), self.settings);
        PgBouncer::launch(server, config).await
    }
}
