use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use sqlock_core::{
    Error, Holder, InspectBackend, LockBackend, LockGuard, LockKey, Request, Result, SharedBackend,
    TellsLoss, WritersFirst,
};
use sqlx::postgres::PgConnectOptions;
use tokio::sync::{mpsc, oneshot};

use crate::{
    BACKEND, SessionHeld, SessionOptions,
    command::{Asked, Command},
    link::Link,
    outage::Outage,
    owner::Owner,
    settings::application_name,
};

/// Locks of one PostgreSQL session: `pg_try_advisory_lock`, many locks on one connection.
///
/// A lock is held for as long as the session lives. When the process dies the server frees it at
/// once; when the connection is lost, so is the lock, and its guard is told
/// ([`LossCause::ConnectionClosed`](sqlock_core::LossCause)). The session is never replaced under
/// locks that are held.
///
/// The connection must not go through a transaction pooler: it is looked for before the first lock,
/// by two connections, and refused ([`SessionOptions::preflight`]). The connection is this backend's
/// own, and takes none of the application's pool.
///
/// The backend lives on the runtime on which it was made: on a current-thread runtime nothing
/// moves, releases included, while that runtime is not running. Where that runtime is gone, its
/// locks are lost, and the next acquire starts anew on the caller's.
pub struct SessionBackend {
    options: SessionOptions,
    connect: PgConnectOptions,
    owner: Mutex<mpsc::UnboundedSender<Command>>,
    outage: Outage,
    arrivals: AtomicU64,
}

impl SessionBackend {
    /// Connects to the server of this URL, with the default options.
    ///
    /// # Errors
    ///
    /// As [`SessionOptions::connect`].
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is closed.
    pub async fn connect(url: &str) -> Result<Self> {
        SessionOptions::new().connect(url).await
    }

    /// Connects with options of sqlx.
    ///
    /// # Errors
    ///
    /// As [`SessionOptions::connect`].
    ///
    /// # Cancel safety
    ///
    /// Safe: the connection is closed.
    pub async fn connect_with(options: PgConnectOptions) -> Result<Self> {
        SessionOptions::new().connect_with(options).await
    }

    /// What the connection is called in `pg_stat_activity`, and with it the holder of its locks.
    #[must_use]
    pub fn application_name(&self) -> &str {
        application_name(&self.options, &self.connect)
    }

    pub(crate) async fn open(options: SessionOptions, connect: PgConnectOptions) -> Result<Self> {
        let link = Link::open_first(&options, &connect).await?;
        let outage = Outage::default();
        let owner = Owner::spawn(options.clone(), connect.clone(), outage.clone(), Some(link));
        Ok(Self {
            options,
            connect,
            owner: Mutex::new(owner),
            outage,
            arrivals: AtomicU64::new(0),
        })
    }

    /// The owner's address; of a new one, on the caller's runtime, where the old one is gone.
    fn owner(&self) -> mpsc::UnboundedSender<Command> {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if owner.is_closed() {
            let (options, connect) = (self.options.clone(), self.connect.clone());
            *owner = Owner::spawn(options, connect, self.outage.clone(), None);
        }
        owner.clone()
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T>>) -> Command,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.owner().send(command(answer)).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    async fn request(&self, request: Request) -> Result<Option<LockGuard<SessionHeld>>> {
        let number = self.arrivals.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let deadline = request.deadline();
        let owner = self.owner();
        owner
            .send(Command::Acquire(Asked {
                number,
                request: request.clone(),
                answer,
            }))
            .map_err(|_| gone())?;
        let mut pending = Pending {
            number,
            request: Some(request),
            answered,
            owner,
        };
        let answer = match deadline {
            // without a budget it is a try, which the owner answers
            Some(deadline) if !deadline.has_passed() => {
                match deadline.bound(&mut pending.answered).await {
                    Some(answer) => answer,
                    None => return pending.last_word(&self.outage),
                }
            }
            _ => (&mut pending.answered).await,
        };
        pending.request = None;
        answer.map_err(|_| gone())?
    }
}

/// A request under way. Dropped, it tells the owner that nobody waits for the answer any more.
struct Pending {
    number: u64,
    request: Option<Request>,
    answered: oneshot::Receiver<Result<Option<LockGuard<SessionHeld>>>>,
    owner: mpsc::UnboundedSender<Command>,
}

impl Pending {
    /// Time is up. An answer that came at the same moment counts. Without a connection nobody is
    /// known to hold the lock, and that is what to say.
    fn last_word(mut self, outage: &Outage) -> Result<Option<LockGuard<SessionHeld>>> {
        self.answered.close();
        match (self.answered.try_recv(), outage.last_error()) {
            (Ok(answer), _) => answer,
            (Err(_), Some(error)) => Err(error),
            (Err(_), None) => Ok(None),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            self.answered.close();
            let number = self.number;
            self.owner.send(Command::Forget { number, request }).ok();
        }
    }
}

fn gone() -> Error {
    Error::Unavailable {
        backend: BACKEND,
        source: "the runtime on which the backend lived was shut down".into(),
    }
}

#[async_trait]
impl LockBackend for SessionBackend {
    type Held = SessionHeld;

    fn name(&self) -> &'static str {
        BACKEND
    }

    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<SessionHeld>>> {
        self.request(request).await
    }

    async fn shutdown(&self) -> Result<()> {
        self.ask(|done| Command::ShutDown { done }).await
    }
}

impl TellsLoss for SessionBackend {}

impl WritersFirst for SessionBackend {}

#[async_trait]
impl SharedBackend for SessionBackend {
    async fn acquire_shared(&self, request: Request) -> Result<Option<LockGuard<SessionHeld>>> {
        self.request(request).await
    }
}

#[async_trait]
impl InspectBackend for SessionBackend {
    async fn holders(&self, key: &LockKey) -> Result<Vec<Holder>> {
        let key = key.clone();
        self.ask(|answer| Command::Inspect { key, answer }).await
    }
}

impl fmt::Debug for SessionBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBackend")
            .field("host", &self.connect.get_host())
            .field("database", &self.connect.get_database())
            .finish_non_exhaustive()
    }
}
