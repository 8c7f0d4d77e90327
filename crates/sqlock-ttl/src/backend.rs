use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sqlock_core::{Error, Holder, LockGuard, LockKey, Queued, Request, Result};
use tokio::sync::{mpsc, oneshot};

use crate::{
    LeaseOptions, LeaseRecord, TtlHeld, command::Command, keeper::Keeper, row_name::row_name,
    store::Store,
};

/// Opens the store. Connections live on the runtime on which they were made, so that a keeper on
/// another runtime needs others.
pub(crate) type OpenStore = Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// What the backends of all databases share: the address of the keeper, and its store.
pub(crate) struct Leases {
    name: &'static str,
    open: OpenStore,
    options: LeaseOptions,
    current: Mutex<Current>,
    arrivals: AtomicU64,
}

struct Current {
    store: Arc<dyn Store>,
    keeper: mpsc::UnboundedSender<Command>,
    /// What this keeper's waiters are called by.
    process: Arc<str>,
}

impl Leases {
    pub(crate) fn new(open: OpenStore, options: LeaseOptions) -> Self {
        let current = Current::start(&open, &options);
        Self {
            name: current.store.name(),
            open,
            options,
            current: Mutex::new(current),
            arrivals: AtomicU64::new(0),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) async fn acquire(&self, request: Request) -> Result<Option<LockGuard<TtlHeld>>> {
        let number = self.arrivals.fetch_add(1, Ordering::Relaxed);
        let deadline = request.deadline();
        let (answer, answered) = oneshot::channel();
        let keeper = self.keeper();
        let command = Command::Acquire {
            number,
            request: request.clone(),
            answer,
        };
        keeper.send(command).map_err(|_| self.gone())?;
        let mut pending = Pending {
            number,
            request: Some(request),
            answered,
            keeper,
        };
        let answer = match deadline {
            Some(deadline) if !deadline.has_passed() => {
                match deadline.bound(&mut pending.answered).await {
                    Some(answer) => answer,
                    None => return pending.last_word(),
                }
            }
            // without a budget it is a try, which the keeper answers
            _ => (&mut pending.answered).await,
        };
        pending.request = None;
        answer.map_err(|_| self.gone())?
    }

    pub(crate) async fn shutdown(&self) -> Result<()> {
        let (done, answer) = oneshot::channel();
        self.keeper()
            .send(Command::ShutDown { done })
            .map_err(|_| self.gone())?;
        answer.await.map_err(|_| self.gone())?
    }

    pub(crate) async fn holders(&self, key: &LockKey) -> Result<Vec<Holder>> {
        let records = self.store().list(Some(&row_name(key))).await?;
        Ok(records.into_iter().map(LeaseRecord::into_holder).collect())
    }

    pub(crate) async fn inspect(&self, key: &LockKey) -> Result<Option<LeaseRecord>> {
        let records = self.store().list(Some(&row_name(key))).await?;
        Ok(records.into_iter().next())
    }

    pub(crate) async fn list(&self) -> Result<Vec<LeaseRecord>> {
        self.store().list(None).await
    }

    pub(crate) async fn queue(&self, key: &LockKey) -> Result<Vec<Queued>> {
        let (store, process) =
            self.current(|current| (Arc::clone(&current.store), Arc::clone(&current.process)));
        let rows = store.queue(&row_name(key)).await?;
        let rows = rows.into_iter().map(|row| row.into_queued(&process));
        Ok(rows.collect())
    }

    pub(crate) async fn sweep(&self, unused_for: Duration) -> Result<u64> {
        self.store().sweep(unused_for).await
    }

    #[cfg(feature = "postgres")]
    pub(crate) async fn create_table(&self) -> Result<()> {
        self.store().create_table().await
    }

    #[cfg(feature = "postgres")]
    pub(crate) async fn check_listening(&self) -> Result<()> {
        self.store().check_listening().await
    }

    fn keeper(&self) -> mpsc::UnboundedSender<Command> {
        self.current(|current| current.keeper.clone())
    }

    fn store(&self) -> Arc<dyn Store> {
        self.current(|current| Arc::clone(&current.store))
    }

    /// Starts anew, on the caller's runtime, where the keeper's is gone.
    fn current<T>(&self, pick: impl FnOnce(&Current) -> T) -> T {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.keeper.is_closed() {
            *current = Current::start(&self.open, &self.options);
        }
        pick(&current)
    }

    fn gone(&self) -> Error {
        Error::Unavailable {
            backend: self.name(),
            source: "the runtime on which the backend lived was shut down".into(),
        }
    }
}

impl Current {
    fn start(open: &OpenStore, options: &LeaseOptions) -> Self {
        let store = open();
        let process: Arc<str> = format!("{:016x}", rand::random::<u64>()).into();
        let keeper = Keeper::spawn(Arc::clone(&store), options.clone(), Arc::clone(&process));
        Self {
            store,
            keeper,
            process,
        }
    }
}

/// A request under way. Dropped, it tells the keeper that nobody waits for the answer any more.
struct Pending {
    number: u64,
    request: Option<Request>,
    answered: oneshot::Receiver<Result<Option<LockGuard<TtlHeld>>>>,
    keeper: mpsc::UnboundedSender<Command>,
}

impl Pending {
    /// Time is up. An answer that came at the same moment counts.
    fn last_word(mut self) -> Result<Option<LockGuard<TtlHeld>>> {
        self.answered.close();
        self.answered.try_recv().unwrap_or(Ok(None))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            self.answered.close();
            let number = self.number;
            self.keeper.send(Command::Forget { number, request }).ok();
        }
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What a backend of leases is to core, whatever its database.
macro_rules! backend_of_leases {
    ($backend:ty $(, $order:ident: $bound:ident)?) => {
        #[async_trait::async_trait]
        impl$(<$order: $bound>)? sqlock_core::LockBackend for $backend {
            type Held = crate::TtlHeld;

            fn name(&self) -> &'static str {
                self.leases.name()
            }

            async fn acquire(
                &self,
                request: sqlock_core::Request,
            ) -> sqlock_core::Result<Option<sqlock_core::LockGuard<crate::TtlHeld>>> {
                self.leases.acquire(request).await
            }

            async fn shutdown(&self) -> sqlock_core::Result<()> {
                self.leases.shutdown().await
            }
        }

        impl$(<$order: $bound>)? sqlock_core::LeaseBackend for $backend {}

        impl$(<$order: $bound>)? sqlock_core::TellsLoss for $backend {}

        #[async_trait::async_trait]
        impl$(<$order: $bound>)? sqlock_core::InspectBackend for $backend {
            async fn holders(
                &self,
                key: &sqlock_core::LockKey,
            ) -> sqlock_core::Result<Vec<sqlock_core::Holder>> {
                self.leases.holders(key).await
            }
        }
    };
}
pub(crate) use backend_of_leases;
