use std::{cmp::Reverse, collections::VecDeque, sync::Arc, time::Duration};

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
    /// Its place in the line of all processes.
    pub(super) ticket: Option<i64>,
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
            ticket: None,
            came: Instant::now(),
        }
    }

    /// In whose queue it begins.
    #[allow(clippy::indexing_slicing, reason = "a request has a key at least")]
    pub(super) fn first_row(&self) -> Arc<str> {
        Arc::clone(&self.rows[0])
    }

    /// Its rows are free and locked by somebody, and it does not wait for them any longer.
    pub(super) fn has_had_enough(&self, now: Instant) -> bool {
        !self.waits() && now.duration_since(self.came) > LONGEST_BUSY
    }

    /// By priority, by place in the line of all processes, and by arrival in this one.
    fn rank(&self) -> (Reverse<i16>, i64, u64) {
        let ticket = self.ticket.unwrap_or(i64::MAX);
        (Reverse(self.request.priority()), ticket, self.number)
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
    /// While it was claimed, it was said that it is free.
    pub(super) was_woken: bool,
    /// Looks in a row that found it taken.
    misses: u32,
}

/// How often a row is looked at that another has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) longest: Duration,
    pub(super) rhythm: Rhythm,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Rhythm {
    /// Soon at first.
    Slowing,
    /// Its release is heard.
    Even,
}

/// The time from a first look to the second; later ones take twice the time of the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

impl Entry {
    pub(super) fn enqueue(&mut self, waiter: Waiter) {
        let place = self
            .queue
            .iter()
            .rposition(|earlier| earlier.rank() < waiter.rank())
            .map_or(0, |place| place + 1);
        self.queue.insert(place, waiter);
    }

    pub(super) fn sort(&mut self) {
        self.queue.make_contiguous().sort_by_key(Waiter::rank);
    }

    /// Somebody here wants it, or has a claim of it under way.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_claimed || !self.queue.is_empty()
    }

    /// Something may have changed. A claim that is under way may have come too early to see it.
    pub(super) fn look_now(&mut self) {
        self.look_at = None;
        self.was_woken |= self.is_claimed;
    }

    pub(super) fn claimed(&mut self) {
        self.is_claimed = true;
        self.was_woken = false;
    }

    pub(super) fn prune(&mut self) {
        while self.queue.front().is_some_and(Waiter::is_gone) {
            self.queue.pop_front();
        }
    }

    /// Another has it, for so long unless it is renewed.
    pub(super) fn missed(&mut self, remaining: Duration, pace: Pace, now: Instant) {
        let pause = match pace.rhythm {
            Rhythm::Even => pace.longest,
            Rhythm::Slowing => FIRST_PAUSE * 2_u32.saturating_pow(self.misses.min(16)),
        };
        self.misses += 1;
        // jittered, or waiters that met once would meet at every look
        let jittered = pause
            .min(pace.longest)
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
