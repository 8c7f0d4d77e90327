use std::time::Duration;

use rand::Rng;
use sqlock_core::Error;
use tokio::time::Instant;

use crate::table::Whom;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// When to try for a new session, and whom to tell that there is none.
#[derive(Debug)]
pub(crate) struct Reconnect {
    limit: Duration,
    outage: Option<Outage>,
}

#[derive(Debug, Clone, Copy)]
struct Outage {
    began: Instant,
    pause: Duration,
    not_before: Instant,
}

impl Reconnect {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            outage: None,
        }
    }

    pub(crate) fn not_before(&self) -> Option<Instant> {
        self.outage.map(|outage| outage.not_before)
    }

    pub(crate) fn succeeded(&mut self) {
        self.outage = None;
    }

    pub(crate) fn failed(&mut self, error: &Error, now: Instant) -> Whom {
        let (began, pause) = match self.outage {
            None => (now, FIRST_PAUSE),
            Some(outage) => (outage.began, (outage.pause * 2).min(LONGEST_PAUSE)),
        };
        // jittered, or a fleet that lost its server would come back all at once
        let jittered = pause.mul_f64(rand::rng().random_range(0.5..1.0));
        let is_hopeless = !error.is_retryable() || now.duration_since(began) >= self.limit;
        self.outage = Some(Outage {
            // those who come after this start a count of their own
            began: if is_hopeless { now } else { began },
            pause,
            not_before: now + jittered,
        });
        if is_hopeless {
            Whom::Everybody
        } else {
            Whom::Tries
        }
    }
}
