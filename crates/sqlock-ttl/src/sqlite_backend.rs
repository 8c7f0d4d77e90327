use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use sqlock_core::{
    Error, Holder, InspectBackend, IntoLockKey, LeaseBackend, LockBackend, LockGuard, LockKey,
    Request, Result,
};
use tokio::time::{Instant, sleep};

use crate::{
    LeaseOptions, LeaseRecord, TtlHeld, backend::Leases, sqlite::SqliteStore, store::Store,
};

/// Leases in a file of SQLite: locks between the processes of one host, without a server.
///
/// The same as [`TtlBackend`](crate::TtlBackend), but for the clock: a lease ends by the host's
/// clock since boot, and with a reboot, as the holder's process does.
#[derive(Debug)]
pub struct SqliteBackend {
    leases: Leases,
}

impl SqliteBackend {
    /// Opens the file, with the default options.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    ///
    /// # Cancel safety
    ///
    /// Safe: the file stays as it is.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, LeaseOptions::new()).await
    }

    /// Opens the file. It is created where it is missing, for its owner alone, and so are its
    /// directory and its tables; many processes can do so at once.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] where the path cannot be opened, or is on a network file system:
    /// SQLite's locks do not work across hosts. [`Error::Backend`] where the file is no database,
    /// or its table has another shape.
    ///
    /// # Cancel safety
    ///
    /// Safe: the file stays as it is.
    pub async fn open_with(path: impl AsRef<Path>, options: LeaseOptions) -> Result<Self> {
        options.check()?;
        let path: PathBuf = path.as_ref().to_owned();
        SqliteStore::prepare(&path)?;
        let limit = options.statement_limit;
        let open = move || -> Arc<dyn Store> { Arc::new(SqliteStore::new(&path, limit)) };
        let leases = Leases::new(Box::new(open), options);
        create_table(&leases, limit).await?;
        Ok(Self { leases })
    }

    /// The lease of this key, or `None` where it is free.
    ///
    /// # Errors
    ///
    /// Where the key is invalid, or the file cannot be read.
    pub async fn lease(&self, key: impl IntoLockKey) -> Result<Option<LeaseRecord>> {
        self.leases.inspect(&key.into_lock_key()?).await
    }

    /// All leases that are held.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    pub async fn leases(&self) -> Result<Vec<LeaseRecord>> {
        self.leases.list().await
    }

    /// Removes up to 1,000 rows of keys that nobody has used for so long, and tells how many. It
    /// is safe at any time; tokens go on rising.
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub async fn sweep(&self, unused_for: Duration) -> Result<u64> {
        self.leases.sweep(unused_for).await
    }
}

/// The switch of a new file to its log is not waited for by SQLite itself, however long its busy
/// timeout: whoever comes second is told at once that it is busy.
async fn create_table(leases: &Leases, limit: Duration) -> Result<()> {
    let give_up = Instant::now() + limit;
    loop {
        match leases.create_table().await {
            Err(Error::Unavailable { .. }) if Instant::now() < give_up => {
                let pause = rand::random_range(2..20);
                sleep(Duration::from_millis(pause)).await;
            }
            answer => return answer,
        }
    }
}

#[async_trait]
impl LockBackend for SqliteBackend {
    type Held = TtlHeld;

    fn name(&self) -> &'static str {
        self.leases.name()
    }

    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<TtlHeld>>> {
        self.leases.acquire(request).await
    }

    async fn shutdown(&self) -> Result<()> {
        self.leases.shutdown().await
    }
}

impl LeaseBackend for SqliteBackend {}

#[async_trait]
impl InspectBackend for SqliteBackend {
    async fn holders(&self, key: &LockKey) -> Result<Vec<Holder>> {
        self.leases.holders(key).await
    }
}
