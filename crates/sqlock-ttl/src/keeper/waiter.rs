use std::{collections::VecDeque, sync::Arc, time::Duration};

use rand::Rng;
use sqlock_core::Request;
use tokio::time::Instant;

use crate::{command::Answer, row_name::row_name};

/// A request that waits for its rows, in the queue of the one that it was refused.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) number: u64,
    pub(super) request: Request,
    pub(super) rows: Arc<[Arc<str>]>,
    pub(super) answer: Answer,
    pub(super) patience: Patience,
    came: Instant,
}

/// For so long a try is repeated where its rows are free and somebody has them locked.
const LONGEST_BUSY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Try,
    Wait,
}

impl Waiter {
    pub(super) fn new(number: u64, request: Request, answer: Answer) -> Self {
        let patience = match request.deadline() {
            Some(deadline) if !deadline.has_passed() => Patience::Wait,
            _ => Patience::Try,
        };
        Self {
            number,
            rows: request.keys().iter().map(row_name).collect(),
            request,
            answer,
            patience,
            came: Instant::now(),
        }
    }

    /// Its rows are free and locked by somebody, and it does not wait for them any longer.
    pub(super) fn has_had_enough(&self, now: Instant) -> bool {
        !self.waits() && now.duration_since(self.came) > LONGEST_BUSY
    }

    pub(super) fn waits(&self) -> bool {
        self.patience == Patience::Wait
    }

    pub(super) fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }

    pub(super) fn refuse(self) {
        self.answer.send(Ok(None)).ok();
    }
}

/// One row, as far as this process is concerned with it.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The grant of this process that holds it.
    pub(super) held_by: Option<u64>,
    /// Who in this process wants it, in order of arrival.
    pub(super) queue: VecDeque<Waiter>,
    /// A claim of it is under way.
    pub(super) is_claimed: bool,
    /// When the next look is due.
    pub(super) look_at: Option<Instant>,
    /// Looks in a row that found it taken.
    misses: u32,
}

/// The time from a first look to the second; later ones take twice the time of the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

impl Entry {
    pub(super) fn enqueue(&mut self, waiter: Waiter) {
        let place = self
            .queue
            .iter()
            .rposition(|earlier| earlier.number < waiter.number)
            .map_or(0, |place| place + 1);
        self.queue.insert(place, waiter);
    }

    pub(super) fn prune(&mut self) {
        while self.queue.front().is_some_and(Waiter::is_gone) {
            self.queue.pop_front();
        }
    }

    /// Another has it, for so long unless it is renewed.
    pub(super) fn missed(&mut self, remaining: Duration, longest: Duration, now: Instant) {
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.misses.min(16));
        self.misses += 1;
        // jittered, or waiters that met once would meet at every look
        let jittered = pause
            .min(longest)
            .mul_f64(rand::rng().random_range(0.5..1.0));
        // a lease that is about to end is looked at when it has
        let pause = jittered.min(remaining + Duration::from_millis(1));
        self.look_at = Some(now + pause);
    }

    /// It is free, and somebody is at the row.
    pub(super) fn busy(&mut self, now: Instant) {
        let pause = Duration::from_millis(1) * 2_u32.saturating_pow(self.misses.min(5));
        self.misses += 1;
        self.look_at = Some(now + pause.mul_f64(rand::rng().random_range(0.5..1.0)));
    }

    pub(super) fn won(&mut self, grant: u64) {
        self.held_by = Some(grant);
        self.look_at = None;
        self.misses = 0;
    }

    pub(super) fn came_free(&mut self) {
        self.held_by = None;
        self.look_at = None;
        self.misses = 0;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.held_by.is_none() && self.queue.is_empty() && !self.is_claimed
    }
}
