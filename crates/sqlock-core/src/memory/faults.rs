use std::sync::Arc;

use super::{
    BACKEND,
    node::Node,
    switch::{Switch, Then},
    table::Table,
};
use crate::{Error, IntoLockKey, LossCause, Result};

/// What can be made to go wrong on a node of a [`MemoryBackend`](super::MemoryBackend).
///
/// ```
/// # use std::time::Duration;
/// # use sqlock_core::{Error, Locks, LossCause, MemoryBackend};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
/// let backend = MemoryBackend::new();
/// let locks = Locks::new(backend.clone());
///
/// // a body that is stopped since its lock is lost
/// let work = async {
///     backend.faults().lose("daily-report", LossCause::ConnectionClosed)?;
///     std::future::pending::<sqlock_core::Result<()>>().await
/// };
/// let outcome = locks.with_lock("daily-report", async |_| work.await).await;
/// assert!(matches!(outcome, Err(Error::Lost { .. })));
///
/// // a server that does not answer until it recovers
/// backend.faults().acquires().stall();
/// let refused = locks.acquire_within("daily-report", Duration::from_millis(5)).await;
/// assert!(matches!(refused, Err(Error::Timeout { .. })));
/// backend.faults().acquires().heal();
/// # locks.acquire("daily-report").await?.release().await }
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing goes wrong unless it is told to"]
pub struct Faults<'a> {
    pub(super) table: &'a Arc<Table>,
    pub(super) node: &'a Arc<Node>,
}

impl<'a> Faults<'a> {
    /// Takes a lock away from those who hold it, on whatever node, and tells them `cause`. Gives
    /// how many they were.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`].
    pub fn lose(self, key: impl IntoLockKey, cause: LossCause) -> Result<usize> {
        let id = key.into_lock_key()?.id();
        Ok(self.table.lose(|grants| grants.of_key(id), &cause))
    }

    /// Takes away all that this node holds, as the end of its connection does, and tells the
    /// holders `cause`. Gives how many guards there were.
    #[expect(clippy::must_use_candidate, reason = "it is called for what it does")]
    pub fn lose_all(self, cause: LossCause) -> usize {
        let node = self.node;
        self.table.lose(|grants| grants.of_node(node), &cause)
    }

    /// What happens to the node's next requests for locks.
    pub fn acquires(self) -> FaultSwitch<'a> {
        FaultSwitch(&self.node.acquires)
    }

    /// What happens to the node's next calls of `release`. A failed one frees the lock all the
    /// same, as does a dropped guard.
    pub fn releases(self) -> FaultSwitch<'a> {
        FaultSwitch(&self.node.releases)
    }
}

/// Makes one kind of call fail or stall.
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing goes wrong unless it is told to"]
pub struct FaultSwitch<'a>(&'a Switch);

impl FaultSwitch<'_> {
    /// The next call fails with [`Error::Unavailable`], which is retryable. Said twice, the next
    /// two do.
    pub fn fail_next(self) {
        self.fail_next_with(unavailable());
    }

    /// The next call fails with `error`. Said again, the one after it fails too.
    pub fn fail_next_with(self, error: Error) {
        self.0.change(|plan| plan.next.push_back(error));
    }

    /// Every call fails with [`Error::Unavailable`], until [`heal`](Self::heal).
    pub fn fail(self) {
        self.fail_with(unavailable);
    }

    /// Every call fails with an error of `make`, until [`heal`](Self::heal).
    pub fn fail_with(self, make: impl Fn() -> Error + Send + Sync + 'static) {
        self.0.change(|plan| plan.then = Then::Fail(Arc::new(make)));
    }

    /// Every call stalls until [`heal`](Self::heal), or its deadline. A try has none, and stalls
    /// for as long as it takes.
    pub fn stall(self) {
        self.0.change(|plan| plan.then = Then::Stall);
    }

    /// Calls succeed again, and those that stall go on.
    pub fn heal(self) {
        self.0.heal();
    }
}

fn unavailable() -> Error {
    Error::Unavailable {
        backend: BACKEND,
        source: "told so by the test".into(),
    }
}
