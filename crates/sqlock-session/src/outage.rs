use std::sync::{Arc, Mutex, PoisonError};

use sqlock_core::Error;

use crate::BACKEND;

/// Why there is no connection, for as long as there is none: known to the owner, and to callers
/// whose time runs out meanwhile.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outage(Arc<Mutex<Option<Arc<Error>>>>);

impl Outage {
    pub(crate) fn goes_on(&self, error: Error) {
        *self.lock() = Some(Arc::new(error));
    }

    pub(crate) fn is_over(&self) {
        *self.lock() = None;
    }

    pub(crate) fn last_error(&self) -> Option<Error> {
        let error = Arc::clone(self.lock().as_ref()?);
        Some(match &*error {
            Error::Standby => Error::Standby,
            error_now if error_now.is_retryable() => Error::Unavailable {
                backend: BACKEND,
                source: Box::new(error),
            },
            _ => Error::Backend {
                backend: BACKEND,
                operation: "connect",
                source: Box::new(error),
            },
        })
    }

    pub(crate) fn error(&self) -> Error {
        self.last_error().unwrap_or_else(|| Error::Unavailable {
            backend: BACKEND,
            source: "not connected".into(),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Error>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
