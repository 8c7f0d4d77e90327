use std::{fmt, sync::Arc};

use super::seat::Look;
use crate::{FencingToken, LockKey, Result};

/// A time in which this node leads. Cheap to clone; a clone tells of the same term.
///
/// It ends when the lock is lost or its lease is about to run out, when the body of
/// [`Election::run`](crate::Election::run) returns, and when the election is stopped.
#[derive(Clone)]
pub struct Term {
    pub(super) key: LockKey,
    pub(super) token: Option<FencingToken>,
    pub(super) seat: Arc<dyn Look>,
}

impl Term {
    /// What is led.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// The term's fencing token, above that of every earlier term of whatever node; or `None` where
    /// the backend offers none.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.token
    }

    /// `Ok` while this node leads. It turns by itself, also while the process is paused, and does
    /// not turn back.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) with the cause once the term is over;
    /// [`LossCause::SteppedDown`](crate::LossCause::SteppedDown) where it was ended before the lock
    /// was lost.
    pub fn check(&self) -> Result<()> {
        self.seat.check()
    }

    /// Whether this node leads, at this moment.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.check().is_ok()
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("key", &self.key)
            .field("token", &self.token)
            .field("is_leading", &self.is_leading())
            .finish_non_exhaustive()
    }
}
