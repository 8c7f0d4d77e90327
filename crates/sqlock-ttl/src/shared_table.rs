use std::sync::Arc;

use async_trait::async_trait;
use sqlock_core::{Error, LeaseBackend, LockBackend, LockGuard, LockKey, Request, Result};
use sqlock_postgres::{connect_options, plain_options};
use sqlx::postgres::PgConnectOptions;

use crate::{
    LeaseOptions, TtlHeld,
    backend::Leases,
    postgres::{Columns, SharedSql, SharedStore, TableName},
    postgres_backend::one_connection,
    row_name::row_name,
    store::Store,
};

/// Leases in a table that exists already and that others use too, each by their own code: a row a
/// lock, with its name, its owner, and the time when it ends.
///
/// It excludes, and is excluded by, whoever takes a row only where it is missing or its time has
/// passed by the server's clock, and ends or renews only rows of their own. A row without an end is
/// taken. Of what [`TtlBackend`](crate::TtlBackend) gives, this cannot:
///
/// - fencing tokens: `token()` is `None`. The rows have nowhere to keep one, and others would not
///   raise it;
/// - who holds a lock, its label and its payload: the owner is a random word;
/// - an end that is looked at after a wait, where the others' statements do not: theirs may be born
///   expired;
/// - sweeping: the rows are not only ours.
///
/// Keys are plain names, as the others know them. The name must be the table's primary key, or
/// unique; and the columns must hold the names in use, and 32 characters of an owner.
///
/// ```no_run
/// # async fn example() -> sqlock_core::Result<()> {
/// use sqlock_core::Locks;
/// use sqlock_ttl::SharedTable;
///
/// let url = "postgres://app@db.internal/app";
/// let locks = Locks::new(SharedTable::locks("public", "locks").connect(url)?);
/// if let Some(lease) = locks.try_acquire("nightly").await? {
///     // … neither another of ours nor any of theirs is here …
///     lease.release().await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SharedTableBackend {
    leases: Leases,
}

/// A table that others use too, and how leases in it are kept.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until `connect` is called"]
pub struct SharedTable {
    schema: String,
    table: String,
    columns: Columns,
    leases: LeaseOptions,
}

const LOCKS: Columns = Columns {
    name: "name",
    owner: "owner",
    end: "expires_at",
    since: None,
    now: "clock_timestamp()",
};

const SHEDLOCK: Columns = Columns {
    name: "name",
    owner: "locked_by",
    end: "lock_until",
    since: Some("locked_at"),
    now: "timezone('utc', clock_timestamp())",
};

impl SharedTable {
    /// A table `(name, owner, expires_at)`, whose times have a time zone.
    pub fn locks(schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self::new(schema.into(), table.into(), LOCKS)
    }

    /// A table of `ShedLock`: `(name, lock_until, locked_at, locked_by)`, whose times are those of
    /// UTC and have no time zone. All others must use the database's time (`usingDbTime`): against
    /// a node's own clock that is behind, nothing helps.
    pub fn shedlock(schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self::new(schema.into(), table.into(), SHEDLOCK)
    }

    fn new(schema: String, table: String, columns: Columns) -> Self {
        Self {
            schema,
            table,
            columns,
            leases: LeaseOptions::new(),
        }
    }

    /// How leases are kept. The default is [`LeaseOptions::new`].
    pub fn leases(mut self, leases: LeaseOptions) -> Self {
        self.leases = leases;
        self
    }

    /// Connects to the server of this URL, by two connections of the backend's own.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] where the URL or another option cannot be. The server is not asked
    /// before the first lock.
    pub fn connect(self, url: &str) -> Result<SharedTableBackend> {
        let options = connect_options(url)?;
        self.connect_with(options)
    }

    /// Connects with options of sqlx.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn connect_with(self, options: PgConnectOptions) -> Result<SharedTableBackend> {
        self.leases.check()?;
        let name = TableName::new(&self.schema, &self.table)?;
        let sql = SharedSql::new(&name, self.columns);
        let options = plain_options(options);
        let leases = self.leases.clone();
        let open = move || -> Arc<dyn Store> {
            let connect = || one_connection(&leases).connect_lazy_with(options.clone());
            Arc::new(SharedStore::new(connect(), connect(), sql.clone()))
        };
        Ok(SharedTableBackend {
            leases: Leases::new(Box::new(open), self.leases),
        })
    }
}

#[async_trait]
impl LockBackend for SharedTableBackend {
    type Held = TtlHeld;

    fn name(&self) -> &'static str {
        self.leases.name()
    }

    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<TtlHeld>>> {
        request.keys().iter().try_for_each(check_key)?;
        self.leases.acquire(request).await
    }

    async fn shutdown(&self) -> Result<()> {
        self.leases.shutdown().await
    }
}

impl LeaseBackend for SharedTableBackend {}

/// Others know a key by its name alone: what is written in another way would exclude nobody.
fn check_key(key: &LockKey) -> Result<()> {
    if key.name() == Some(&*row_name(key)) {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option: "key",
        reason:
            "in a table that others use, a key is a plain name: no number, no namespace, and no \
                 name that begins with `#` or with digits and a colon"
                .to_owned(),
    })
}
