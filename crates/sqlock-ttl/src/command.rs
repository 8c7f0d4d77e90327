use std::time::Duration;

use sqlock_core::{LockGuard, Request, Result};
use tokio::sync::oneshot;

use crate::TtlHeld;

/// The answer to an acquire. A guard in it is armed: an answer that nobody takes releases itself.
pub(crate) type Answer = oneshot::Sender<Result<Option<LockGuard<TtlHeld>>>>;

/// Told when something is done.
pub(crate) type Done = oneshot::Sender<Result<()>>;

/// What callers ask of the keeper.
#[derive(Debug)]
pub(crate) enum Command {
    /// Take all keys of the request, or none.
    Acquire {
        number: u64,
        request: Request,
        answer: Answer,
    },
    /// The caller of this request has gone away.
    Forget { number: u64, request: Request },
    /// The grant is over. It is named by its number and not by its keys: sent twice, it must not
    /// release the next holder's lease.
    Release { grant: u64, done: Option<Done> },
    /// The grant is to be valid for so long from now, and as long again at each renewal.
    Extend {
        grant: u64,
        ttl: Duration,
        done: Done,
    },
    /// Give everything back, and take no more requests.
    ShutDown { done: Done },
}
