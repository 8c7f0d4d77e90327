use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlock_core::Error;

/// What an acquire has met with so far, for its caller whose time is up.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<State>);

#[derive(Debug, Default)]
pub(crate) enum State {
    /// It has never had a connection.
    #[default]
    NoConnection,
    /// The server was asked, and gave the lock to others so far.
    Asked,
    /// The last attempt failed, and another was to come.
    Failed(Error),
}

impl Progress {
    pub(crate) fn set(&self, state: State) {
        *self.lock() = state;
    }

    pub(crate) fn take(&self) -> State {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
