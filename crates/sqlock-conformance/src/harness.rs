use std::time::Duration;

use async_trait::async_trait;
use sqlock_core::{LockBackend, Locks, LossCause};

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
