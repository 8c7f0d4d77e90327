use std::time::Duration;

use async_trait::async_trait;
use sqlock_core::{LeaseBackend, Leased, LockBackend, Locks, LossCause};

/// How the suite starts a world for a backend, and looks at it from the outside.
#[async_trait]
pub trait Harness: Sized + Send + Sync + 'static {
    /// The backend that is tested.
    type Backend: LockBackend;

    /// No case takes longer; one that hangs fails with its name. The default is a minute.
    const TIME_LIMIT: Duration = Duration::from_secs(60);

    /// What must happen without being waited for (a dropped guard's release, a waiter's turn)
    /// has happened after this. The default is ten seconds.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// A fresh world, in which nothing is held: a database, a directory, a table.
    async fn start() -> Self;

    /// A new node in this world, as another process would be: with a connection of its own.
    ///
    /// It is called on whatever runtime the node is to live on, and more than once. The nodes'
    /// locks contend with each other.
    async fn node(&self) -> Locks<Self::Backend>;

    /// How many locks are held now as the server sees it, asked by other means than the backend
    /// itself: a guard over two keys counts two, and so do two readers of one key.
    ///
    /// What the backend keeps for its own bookkeeping is left out.
    async fn held(&self) -> usize;

    /// All that the nodes have left on the server: [`held`](Self::held) and the backend's own
    /// bookkeeping. Soon after the last guard and the last waiter are gone it must be zero. The
    /// default is `held`.
    async fn leftovers(&self) -> usize {
        self.held().await
    }
}

/// How the suite breaks what holds a lock. For the capability `loss`.
#[async_trait]
pub trait LossHarness: Harness {
    /// How soon the holder has to be told. The default is a second.
    const NOTICE: Duration = Duration::from_secs(1);

    /// Makes the node lose the locks that it holds: ends its session on the server, say.
    async fn break_holder(&self, node: &Locks<Self::Backend>);

    /// Whether the holder may be told this cause after [`break_holder`](Self::break_holder). The
    /// default is [`LossCause::ConnectionClosed`] alone.
    #[must_use]
    fn explains(cause: &LossCause) -> bool {
        *cause == LossCause::ConnectionClosed
    }
}

/// How the suite comes between leases and their server. For the capability `leases`.
#[async_trait]
pub trait LeaseHarness: Harness<Backend: LeaseBackend<Held: Leased>> {
    /// The TTL that the cases ask for. It must be long enough to be renewed on a busy machine, and
    /// most cases last two or three of it. The default is a second.
    const TTL: Duration = Duration::from_secs(1);

    /// Until the returned value is dropped, nothing is granted or renewed, for any node: what is
    /// asked meanwhile is done afterwards. The whole table is locked, say, by another transaction.
    async fn block(&self) -> Box<dyn Send>;
}

/// How the suite sets the clock by which leases end. For the capability `clock_steps`.
#[async_trait]
pub trait ClockHarness: LeaseHarness {
    /// Makes the server's clock step, as far as its leases can tell: to shift all times that it has
    /// written the other way comes to the same.
    async fn step(&self, step: Step);
}

/// A step of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// To a later time.
    Ahead(Duration),
    /// To an earlier time.
    Back(Duration),
}
