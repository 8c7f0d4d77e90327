//! A transaction that failed, and a database that cannot be reached.

use std::{error, fmt, sync::Arc, time::Duration};

use sqlock_core::Error;
use tokio::time::Instant;

use super::{
    book::{Book, Outage, State},
    claims::Asked,
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Book {
    /// What became of the transaction is not known: what it may have taken is given back.
    pub(super) fn exchange_failed(&mut self, asked: Asked, error: &Arc<Error>, now: Instant) {
        let hopeless = self.outage_goes_on(error, now);
        self.line.failed(asked.leaves, now);
        for mut release in asked.releases {
            if let Some((done, _)) = release.done.take() {
                done.send(Err(self.again(error))).ok();
            }
            if release.until > now {
                self.releases.push_back(release);
            }
        }
        let is_open = matches!(self.state, State::Open);
        for claimant in asked.requests {
            self.unclaim(&claimant.waiter);
            self.take_back(claimant.ids(), claimant.ttl, now);
            let waiter = claimant.waiter;
            if !is_open {
                let refusal = Err(self.was_shut_down());
                self.answer(waiter, refusal);
            } else if waiter.waits() && !hopeless {
                let row = waiter.first_row();
                self.queue_again(waiter, row);
            } else {
                let failure = Err(self.again(error));
                self.answer(waiter, failure);
            }
        }
        if hopeless {
            self.wanted.clear();
            self.line.leave_all();
            for entry in std::mem::take(&mut self.entries).into_values() {
                for waiter in entry.queue {
                    waiter.answer.send(Err(self.again(error))).ok();
                }
            }
            self.restore_held();
        }
    }

    fn outage_goes_on(&mut self, error: &Error, now: Instant) -> bool {
        let (began, pause) = match self.outage {
            None => (now, FIRST_PAUSE),
            Some(outage) => (outage.began, (outage.pause * 2).min(LONGEST_PAUSE)),
        };
        self.outage = Some(Outage {
            began,
            again_at: now + pause,
            pause,
        });
        !error.is_retryable() || now.duration_since(began) >= self.options.outage_limit
    }

    fn restore_held(&mut self) {
        for (grant, lease) in &self.leases {
            for id in &lease.ids {
                self.entries
                    .entry(Arc::clone(&id.row))
                    .or_default()
                    .won(*grant);
            }
        }
    }

    /// The same error for one more caller.
    fn again(&self, error: &Arc<Error>) -> Error {
        let source = Box::new(SourceOf(Arc::clone(error)));
        match &**error {
            Error::InvalidOption { option, reason } => Error::InvalidOption {
                option,
                reason: reason.clone(),
            },
            error if error.is_retryable() => Error::Unavailable {
                backend: self.backend,
                source,
            },
            _ => Error::Backend {
                backend: self.backend,
                operation: "acquire",
                source,
            },
        }
    }
}

/// What an error that many callers get has as its source: what it says itself is said by each of
/// theirs.
#[derive(Debug)]
struct SourceOf(Arc<Error>);

impl fmt::Display for SourceOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match error::Error::source(&*self.0) {
            Some(source) => fmt::Display::fmt(source, f),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl error::Error for SourceOf {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        error::Error::source(&*self.0)?.source()
    }
}
