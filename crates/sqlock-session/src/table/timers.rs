use rand::Rng;
use sqlock_core::AdvisoryId;
use tokio::time::Instant;

use super::{Entry, Table};

impl Table {
    /// When [`tick`](Self::tick) has something to do.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        let stand_back = self.standing_back.front().map(|(until, _)| *until);
        [stand_back, self.next_poll].into_iter().flatten().min()
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        while let Some((until, id)) = self.standing_back.front().copied()
            && until <= now
        {
            self.standing_back.pop_front();
            self.mark(id);
        }
        if self.next_poll.is_some_and(|at| at <= now) {
            self.next_poll = None;
            let sleeping: Vec<_> = self.sleeping.drain().collect();
            for id in sleeping {
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.asleep = false;
                    self.mark(id);
                }
            }
        }
    }

    /// Leaves a key alone for a moment, so that a session that waits for it can have it.
    pub(super) fn stand_back(&mut self, id: AdvisoryId, entry: &mut Entry, now: Instant) {
        let until = now + self.timing.stand_back;
        entry.stand_back = Some(until);
        self.standing_back.push_back((until, id));
    }

    /// Lets the waiters of a key rest until a notification or the next poll.
    pub(super) fn sleep(&mut self, id: AdvisoryId, now: Instant) {
        self.sleeping.insert(id);
        if self.next_poll.is_none() {
            // jittered, or a fleet that started together would poll together
            let share = rand::rng().random_range(0.5..1.0);
            self.next_poll = Some(now + self.timing.poll.mul_f64(share));
        }
    }
}
