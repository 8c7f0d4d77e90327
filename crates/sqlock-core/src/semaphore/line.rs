use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::MutexGuard;

use crate::{Error, LockKey, Result};

/// The semaphores that are there, of one [`Locks`](crate::Locks) and its clones.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<HashMap<LockKey, Weak<Line>>>);

impl Lines {
    /// The line of a semaphore, which all that name it share.
    ///
    /// # Errors
    ///
    /// Where there is one already that has another number of permits.
    pub(super) fn line(&self, key: &LockKey, permits: usize) -> Result<Arc<Line>> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(key).and_then(Weak::upgrade) {
            return if line.permits == permits {
                Ok(line)
            } else {
                Err(Error::InvalidOption {
                    option: "permits",
                    reason: format!(
                        "semaphore \"{key}\" has {} permits elsewhere in this process, and {permits} \
                         here",
                        line.permits
                    ),
                })
            };
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Line {
            permits,
            length: AtomicUsize::new(0),
            first: tokio::sync::Mutex::new(()),
        });
        lines.insert(key.clone(), Arc::downgrade(&line));
        Ok(line)
    }
}

/// Those of this process who wait for a permit, in the order in which they came. Only the first
/// of them asks the backend, so that waiting costs it the same however many wait.
#[derive(Debug)]
pub(super) struct Line {
    permits: usize,
    length: AtomicUsize,
    // hands itself on in the order of arrival
    first: tokio::sync::Mutex<()>,
}

/// The first place of a line. The next one has it when this is dropped.
pub(super) struct First<'a> {
    _first: MutexGuard<'a, ()>,
    _place: Place<'a>,
}

struct Place<'a>(&'a AtomicUsize);

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Acquire) == 0
    }

    /// # Cancel safety
    ///
    /// Dropped, it leaves the line.
    pub(super) async fn first(&self) -> First<'_> {
        self.length.fetch_add(1, Ordering::AcqRel);
        let place = Place(&self.length);
        First {
            _first: self.first.lock().await,
            _place: place,
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
