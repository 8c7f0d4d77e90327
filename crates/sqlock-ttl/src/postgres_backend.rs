use std::{sync::Arc, time::Duration};

use sqlock_core::{IntoLockKey, Result};
use sqlock_postgres::{connect_options, plain_options};
use sqlx::{
    Connection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    LeaseOptions, LeaseRecord,
    backend::{Leases, backend_of_leases},
    postgres::{PostgresStore, TableName},
    store::Store,
};

/// Leases in a table of PostgreSQL.
///
/// A lease is held until its expiry by the database's clock, and renewed by itself until it is
/// released. It needs no connection while it is held, and works behind any pooler.
///
/// The table must exist: see [`create_table`](Self::create_table).
#[derive(Debug)]
pub struct TtlBackend {
    leases: Leases,
}

/// Options of a [`TtlBackend`].
#[derive(Debug, Clone)]
#[must_use = "options do nothing until `connect` is called"]
pub struct TtlOptions {
    leases: LeaseOptions,
    schema: String,
    table: String,
}

impl Default for TtlOptions {
    fn default() -> Self {
        Self {
            leases: LeaseOptions::new(),
            schema: "public".to_owned(),
            table: "sqlock_leases".to_owned(),
        }
    }
}

impl TtlOptions {
    /// The defaults, which each setter states.
    pub fn new() -> Self {
        Self::default()
    }

    /// How leases are kept. The default is [`LeaseOptions::new`].
    pub fn leases(mut self, leases: LeaseOptions) -> Self {
        self.leases = leases;
        self
    }

    /// The table, with its schema. The default is `public.sqlock_leases`.
    pub fn table(mut self, schema: impl Into<String>, table: impl Into<String>) -> Self {
        self.schema = schema.into();
        self.table = table.into();
        self
    }

    /// Connects to the server of this URL, by two connections of the backend's own.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](sqlock_core::Error::InvalidOption) where the URL or another option
    /// cannot be. The server is not asked before the first lock.
    pub fn connect(self, url: &str) -> Result<TtlBackend> {
        let options = connect_options(url)?;
        self.connect_with(options)
    }

    /// Connects with options of sqlx.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn connect_with(self, options: PgConnectOptions) -> Result<TtlBackend> {
        let options = plain_options(options);
        let leases = self.leases.clone();
        let requests = options.clone();
        self.start(options, move || {
            one_connection(&leases).connect_lazy_with(requests.clone())
        })
    }

    /// Uses a pool of the application's for requests; renewals have a connection of their own, so
    /// that they do not wait for the application's work.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn with_pool(self, requests: PgPool) -> Result<TtlBackend> {
        let options = plain_options((*requests.connect_options()).clone());
        self.start(options, move || requests.clone())
    }

    fn start(
        self,
        renewals: PgConnectOptions,
        requests: impl Fn() -> PgPool + Send + Sync + 'static,
    ) -> Result<TtlBackend> {
        self.leases.check()?;
        let name = TableName::new(&self.schema, &self.table)?;
        let leases = self.leases.clone();
        let open = move || -> Arc<dyn Store> {
            let renewals = one_connection(&leases).connect_lazy_with(renewals.clone());
            Arc::new(PostgresStore::new(requests(), renewals, name.clone()))
        };
        Ok(TtlBackend {
            leases: Leases::new(Box::new(open), self.leases),
        })
    }
}

/// A connection that was not used for so long may have been closed by the server.
const RESTED: Duration = Duration::from_secs(1);

fn one_connection(leases: &LeaseOptions) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(leases.statement_limit)
        .test_before_acquire(false)
        // a round trip a lock would be too much, and after a rest it is none
        .before_acquire(|connection, metadata| {
            Box::pin(async move {
                if metadata.idle_for > RESTED {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
}

impl TtlBackend {
    /// Connects to the server of this URL, with the default options.
    ///
    /// # Errors
    ///
    /// As [`TtlOptions::connect`].
    pub fn connect(url: &str) -> Result<Self> {
        TtlOptions::new().connect(url)
    }

    /// Creates the table where it is missing, safely by many at once. Needs no right to create
    /// where it exists.
    ///
    /// # Errors
    ///
    /// Where the server refuses, or a table of that name has another shape.
    pub async fn create_table(&self) -> Result<()> {
        self.leases.create_table().await
    }

    /// The lease of this key, or `None` where it is free.
    ///
    /// # Errors
    ///
    /// Where the key is invalid, or the server cannot be asked.
    pub async fn lease(&self, key: impl IntoLockKey) -> Result<Option<LeaseRecord>> {
        self.leases.inspect(&key.into_lock_key()?).await
    }

    /// All leases that are held.
    ///
    /// # Errors
    ///
    /// Where the server cannot be asked.
    pub async fn leases(&self) -> Result<Vec<LeaseRecord>> {
        self.leases.list().await
    }

    /// Removes up to 1,000 rows of keys that nobody has used for so long, and tells how many. It
    /// is safe at any time; tokens go on rising.
    ///
    /// # Errors
    ///
    /// Where the server cannot be asked.
    pub async fn sweep(&self, unused_for: Duration) -> Result<u64> {
        self.leases.sweep(unused_for).await
    }
}

backend_of_leases!(TtlBackend);
