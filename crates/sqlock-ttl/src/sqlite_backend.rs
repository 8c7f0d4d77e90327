use std::{marker::PhantomData, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlock_core::{Error, IntoLockKey, LockKey, QueueBackend, Queued, Result};
use tokio::time::{Instant, sleep};

use crate::{
    LeaseOptions, LeaseRecord,
    backend::{Leases, backend_of_leases},
    order::{self, AnyOrder, InOrder, Order},
    sqlite::{HostClock, LeaseFile, Place, SqliteStore, Statements},
    store::Store,
};

/// Leases in a file of SQLite: locks between the processes of one host, without a server.
///
/// The same as in a table of PostgreSQL, but for the clock: a lease ends by the host's clock since
/// boot, and with a reboot, as the holder's process does. Containers of one host can share the
/// file; machines cannot, and what can be recognised as a network file system is refused.
///
/// All processes wait for one another's writes, each of which ends with a write to the disk. A
/// process that is stopped in the midst of one, and anybody else who locks the file for longer than
/// a lease lasts, lets all leases of the file run out.
///
/// ```no_run
/// # async fn example() -> sqlock_core::Result<()> {
/// use sqlock_core::Locks;
/// use sqlock_ttl::SqliteBackend;
///
/// let locks = Locks::new(SqliteBackend::open("/var/lib/app/locks.db").await?);
/// if let Some(lease) = locks.try_acquire("cache-rebuild").await? {
///     // … one process of this host is here …
///     lease.release().await?;
/// }
/// # Ok(()) }
/// ```
///
/// With [`SqliteOptions::queue`] it is a `SqliteBackend<InOrder>`, in which those who wait stand in
/// line.
#[derive(Debug)]
pub struct SqliteBackend<O: Order = AnyOrder> {
    leases: Leases,
    order: PhantomData<O>,
}

/// Options of a [`SqliteBackend`].
#[derive(Debug, Clone)]
#[must_use = "options do nothing until `open` is called"]
pub struct SqliteOptions<O: Order = AnyOrder> {
    leases: LeaseOptions,
    table: String,
    busy_timeout: Duration,
    order: PhantomData<O>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            leases: LeaseOptions::new(),
            table: "sqlock_leases".to_owned(),
            busy_timeout: Duration::MAX,
            order: PhantomData,
        }
    }
}

impl SqliteOptions {
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
    /// Every process that uses the file must ask for it: those that do not pass the line. It makes
    /// a table more, with `_waiters` after its name. Each sign of life of a process with waiters is
    /// a write. The lock is free between a release and the next look of the first in line, which
    /// comes after the poll interval at most.
    pub fn queue(self) -> SqliteOptions<InOrder> {
        SqliteOptions {
            leases: self.leases,
            table: self.table,
            busy_timeout: self.busy_timeout,
            order: PhantomData,
        }
    }
}

impl<O: Order> SqliteOptions<O> {
    /// How leases are kept. The default is [`LeaseOptions::new`].
    pub fn leases(mut self, leases: LeaseOptions) -> Self {
        self.leases = leases;
        self
    }

    /// The table; another one beside it has `_meta` after its name. The default is
    /// `sqlock_leases`.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = table.into();
        self
    }

    /// How long a transaction waits for others to end theirs, before it is an error that is
    /// retried as those of a server that is away. The default, and the longest, is four fifths of
    /// [`LeaseOptions::statement_limit`].
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Opens the file. It is created where it is missing, for its owner alone, and so are its
    /// directory and its tables; many processes can do so at once.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] where an option cannot be, the path cannot be opened, or leads to
    /// a file system that machines share: SQLite's locks do not work across them.
    /// [`Error::Unavailable`] where the file stayed locked. [`Error::Backend`] where it is no
    /// database, cannot be written, or its tables have another shape.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was made in the file stays, and nothing is half made.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteBackend<O>> {
        self.leases.check()?;
        let limit = self.leases.statement_limit;
        let place = Place {
            statements: Arc::new(Statements::new(&self.table)?),
            file: LeaseFile::prepare(path.as_ref())?,
            // SQLite gives up by itself, before its connection is given up
            busy_timeout: self.busy_timeout.min(limit - limit / 5),
            list: order::list::<O>(false),
        };
        let clock = settle(&place, limit).await?;
        let open = move || -> Arc<dyn Store> { Arc::new(SqliteStore::new(&place, clock.clone())) };
        Ok(SqliteBackend {
            leases: Leases::new(Box::new(open), self.leases),
            order: PhantomData,
        })
    }
}

/// The switch of a new file to its log is not waited for by SQLite itself, however long its busy
/// timeout: whoever comes second is told at once that it is busy.
async fn settle(place: &Place, limit: Duration) -> Result<HostClock> {
    let give_up = Instant::now() + limit;
    loop {
        match place.settle().await {
            Err(Error::Unavailable { .. }) if Instant::now() < give_up => {
                let pause = rand::random_range(2..20);
                sleep(Duration::from_millis(pause)).await;
            }
            answer => return answer,
        }
    }
}

impl SqliteBackend {
    /// Opens the file, with the default options.
    ///
    /// # Errors
    ///
    /// As [`SqliteOptions::open`].
    ///
    /// # Cancel safety
    ///
    /// As [`SqliteOptions::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        SqliteOptions::new().open(path).await
    }
}

impl<O: Order> SqliteBackend<O> {
    /// The lease of this key, or `None` where it is free.
    ///
    /// # Errors
    ///
    /// Where the key is invalid, or the file cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn lease(&self, key: impl IntoLockKey) -> Result<Option<LeaseRecord>> {
        self.leases.inspect(&key.into_lock_key()?).await
    }

    /// All leases that are held.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn leases(&self) -> Result<Vec<LeaseRecord>> {
        self.leases.list().await
    }

    /// Removes up to 1,000 rows of keys that nobody has used for so long, and tells how many. It
    /// is safe at any time; tokens go on rising.
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    ///
    /// # Cancel safety
    ///
    /// Safe: the rows are removed or they are not.
    pub async fn sweep(&self, unused_for: Duration) -> Result<u64> {
        self.leases.sweep(unused_for).await
    }
}

backend_of_leases!(SqliteBackend<O>, O: Order);

#[async_trait]
impl QueueBackend for SqliteBackend<InOrder> {
    async fn queue(&self, key: &LockKey) -> Result<Vec<Queued>> {
        self.leases.queue(key).await
    }
}
