use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlock_core::{Error, IntoLockKey, LockKey, QueueBackend, Queued, Result};
use sqlock_postgres::{connect_options, plain_options};
use sqlx::{
    Connection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    LeaseOptions, LeaseRecord, Protocol,
    backend::{Leases, backend_of_leases},
    order::{self, AnyOrder, InOrder, Order},
    postgres::{PostgresStore, Route, TableName},
    store::{List, Store},
};

/// Leases in a table of PostgreSQL.
///
/// A lease is held until its expiry by the database's clock, and renewed by itself until it is
/// released. It needs no connection while it is held, and works behind any pooler.
///
/// The table must exist: see [`create_table`](Self::create_table).
///
/// With [`TtlOptions::queue`] it is a `TtlBackend<InOrder>`, in which those who wait stand in line.
#[derive(Debug)]
pub struct TtlBackend<O: Order = AnyOrder> {
    leases: Leases,
    order: PhantomData<O>,
}

/// Options of a [`TtlBackend`].
#[derive(Debug, Clone)]
#[must_use = "options do nothing until `connect` is called"]
pub struct TtlOptions<O: Order = AnyOrder> {
    leases: LeaseOptions,
    schema: String,
    table: String,
    listen_on: Option<Direct>,
    news: News,
    protocol: Protocol,
    order: PhantomData<O>,
}

/// A connection by which notifications come.
#[derive(Clone)]
enum Direct {
    Url(String),
    Options(Box<PgConnectOptions>),
}

/// Whether releases tell those who listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Kept,
    Told,
}

impl Default for TtlOptions {
    fn default() -> Self {
        Self {
            leases: LeaseOptions::new(),
            schema: "public".to_owned(),
            table: "sqlock_leases".to_owned(),
            listen_on: None,
            news: News::Kept,
            protocol: Protocol::Simple,
            order: PhantomData,
        }
    }
}

impl TtlOptions {
    /// The defaults, which each setter states.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets those who wait stand in line, over all processes: by priority
    /// ([`Lock::priority`](sqlock_core::Lock::priority)), and then by arrival. The default is no
    /// order between processes.
    ///
    /// A newcomer does not pass those who wait, and neither does `try_acquire`: it gives `None`
    /// where another has the lock or waits for it. A waiter keeps its place until it is served or
    /// dropped, or until it has given no sign of life for [`LeaseOptions::waiter_ttl`]. Who waits
    /// for several keys stands in line for each.
    ///
    /// Every process that uses the table must ask for it: those that do not pass the line. It needs
    /// a second table, `_waiters`, which [`TtlBackend::create_table`] makes. The lock is free
    /// between a release and the next look of the first in line; with
    /// [`listen_on`](Self::listen_on) that is a moment, otherwise the poll interval at most.
    pub fn queue(self) -> TtlOptions<InOrder> {
        TtlOptions {
            leases: self.leases,
            schema: self.schema,
            table: self.table,
            listen_on: self.listen_on,
            news: self.news,
            protocol: self.protocol,
            order: PhantomData,
        }
    }
}

impl<O: Order> TtlOptions<O> {
    /// Wakes those who wait as soon as the lock is released, by `LISTEN` on a connection to this
    /// URL. The default is that they poll.
    ///
    /// The connection is there only while somebody in this process waits. It must lead to the
    /// server and the database of the leases directly: through a transaction pooler `LISTEN` does
    /// nothing, and says that it does. So the first connection is tried by a notification of its
    /// own. Where it does not come, a warning says so, and those who wait poll as they would
    /// without; [`TtlBackend::check_listening`] gives it as an error. No lock depends on the
    /// connection, which is made anew when it breaks.
    ///
    /// It needs a second table, `_waiters`, which [`TtlBackend::create_table`] makes: a release
    /// notifies only where that says that somebody listens. Processes that use the table with
    /// neither this nor [`queue`](Self::queue) nor [`notify`](Self::notify) tell nobody of their
    /// releases; for them, and for holders that die, the polls go on.
    pub fn listen_on(mut self, url: impl Into<String>) -> Self {
        self.listen_on = Some(Direct::Url(url.into()));
        self
    }

    /// As [`listen_on`](Self::listen_on), with options of sqlx.
    pub fn listen_with(mut self, options: PgConnectOptions) -> Self {
        self.listen_on = Some(Direct::Options(Box::new(options)));
        self
    }

    /// Tells those who listen in other processes of releases, where this one has no connection on
    /// which it could listen itself. The default is to tell them where
    /// [`listen_on`](Self::listen_on) or [`queue`](Self::queue) is used.
    pub fn notify(mut self) -> Self {
        self.news = News::Told;
        self
    }

    /// How statements are sent. The default is [`Protocol::Simple`].
    ///
    /// Prepared statements do not go together with [`listen_on`](Self::listen_on),
    /// [`queue`](Self::queue) and [`notify`](Self::notify).
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
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
    pub fn connect(self, url: &str) -> Result<TtlBackend<O>> {
        let options = connect_options(url)?;
        self.connect_with(options)
    }

    /// Connects with options of sqlx.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn connect_with(self, options: PgConnectOptions) -> Result<TtlBackend<O>> {
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
    pub fn with_pool(self, requests: PgPool) -> Result<TtlBackend<O>> {
        let options = plain_options((*requests.connect_options()).clone());
        self.start(options, move || requests.clone())
    }

    fn start(
        self,
        renewals: PgConnectOptions,
        requests: impl Fn() -> PgPool + Send + Sync + 'static,
    ) -> Result<TtlBackend<O>> {
        self.leases.check()?;
        let name = TableName::new(&self.schema, &self.table)?;
        let leases = self.leases.clone();
        let route = self.listen_on.map(Direct::options).transpose()?;
        let route = route.map(|options| Route::new(options, leases.statement_limit));
        let list = order::list::<O>(route.is_some() || self.news == News::Told);
        if list != List::None {
            name.check_waiters()?;
            if self.protocol == Protocol::Prepared {
                return Err(Error::InvalidOption {
                    option: "protocol",
                    reason: "prepared statements do not go together with listening or a queue"
                        .to_owned(),
                });
            }
        }
        let protocol = self.protocol;
        let open = move || -> Arc<dyn Store> {
            let renewals = one_connection(&leases).connect_lazy_with(renewals.clone());
            let (name, route) = (name.clone(), route.clone());
            Arc::new(PostgresStore::new(
                requests(),
                renewals,
                name,
                list,
                route,
                protocol,
            ))
        };
        Ok(TtlBackend {
            leases: Leases::new(Box::new(open), self.leases),
            order: PhantomData,
        })
    }
}

impl Direct {
    fn options(self) -> Result<PgConnectOptions> {
        match self {
            Self::Url(url) => connect_options(&url),
            Self::Options(options) => Ok(plain_options(*options)),
        }
    }
}

/// Without what may hold a password.
impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direct").finish_non_exhaustive()
    }
}

/// A connection that was not used for so long may have been closed by the server.
const RESTED: Duration = Duration::from_secs(1);

pub(crate) fn one_connection(leases: &LeaseOptions) -> PgPoolOptions {
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
}

impl<O: Order> TtlBackend<O> {
    /// Creates the table where it is missing, and that of those who wait where the options need it,
    /// safely by many at once. Needs no right to create where they exist.
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

    /// Whether notifications come by the connection of [`TtlOptions::listen_on`]: to find out at
    /// start-up, and not by a warning.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](sqlock_core::Error::InvalidOption) where none was given, or none
    /// comes within [`LeaseOptions::statement_limit`], as through a transaction pooler, and where
    /// it leads to another database. Others where the server cannot be reached.
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is closed.
    pub async fn check_listening(&self) -> Result<()> {
        self.leases.check_listening().await
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

backend_of_leases!(TtlBackend<O>, O: Order);

#[async_trait]
impl QueueBackend for TtlBackend<InOrder> {
    async fn queue(&self, key: &LockKey) -> Result<Vec<Queued>> {
        self.leases.queue(key).await
    }
}
