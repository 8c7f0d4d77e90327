use std::sync::{Arc, Mutex, PoisonError};

use sqlock_core::{Error, Holder, LockGuard, LockKey, LossCause, Request, Result};
use tokio::sync::oneshot;

use crate::SessionHeld;

/// The answer to an acquire. A guard in it is armed: an answer that nobody takes releases itself.
pub(crate) type Answer = oneshot::Sender<Result<Option<LockGuard<SessionHeld>>>>;

/// What callers ask of the owner task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Take all keys of the request, or none.
    Acquire(Asked),
    /// The caller of this request has gone away.
    Forget { number: u64, request: Request },
    /// The grant is over. It is named by its number and not by its keys: sent twice, it must not
    /// release the next holder's lock.
    Release {
        grant: u64,
        receipt: Option<Arc<Receipt>>,
    },
    /// Who holds this lock?
    Inspect {
        key: LockKey,
        answer: oneshot::Sender<Result<Vec<Holder>>>,
    },
    /// Release everything, and take no more requests.
    ShutDown { done: oneshot::Sender<Result<()>> },
}

/// A request with its place in the order of arrival.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) number: u64,
    pub(crate) request: Request,
    pub(crate) answer: Answer,
}

/// Tells a caller that its lock is free: when the last key that the receipt goes with is done.
#[derive(Debug)]
pub(crate) struct Receipt {
    key: LockKey,
    sender: Mutex<Option<oneshot::Sender<Result<()>>>>,
}

impl Receipt {
    pub(crate) fn new(key: LockKey) -> (Arc<Self>, oneshot::Receiver<Result<()>>) {
        let (sender, receiver) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        (Arc::new(Self { key, sender }), receiver)
    }

    /// The lock was lost before it could be released.
    pub(crate) fn lose(&self, cause: &LossCause) {
        self.send(Err(Error::Lost {
            key: self.key.clone(),
            cause: cause.clone(),
        }));
    }

    fn send(&self, result: Result<()>) {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = sender.take() {
            // a caller that has gone away does not want to know
            sender.send(result).ok();
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        self.send(Ok(()));
    }
}
