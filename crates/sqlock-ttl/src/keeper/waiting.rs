//! Those who wait: their places, and what wakes them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use sqlock_core::Result;
use tokio::time::Instant;

use super::{
    book::{Book, State},
    line::Arrival,
    waiter::Waiter,
};
use crate::{
    command::Done,
    store::{Ears, Heard, Hearing, Leave, List, row_hash},
};

/// For how long a process goes on listening after its last waiter has gone: each listener makes
/// every notification of the database dearer.
const LINGER: Duration = Duration::from_secs(1);
/// After a notification that could not be sent, the others rely on their looks for so long.
const QUIET: Duration = Duration::from_secs(5);
/// Rows in one look for those who wait.
const MAX_ROWS: usize = 512;

/// Whether this process listens.
#[derive(Debug, Default)]
pub(super) struct Attention {
    is_wanted: bool,
    /// Nobody has waited since.
    idle_since: Option<Instant>,
    hears: bool,
}

/// Rows that came free, and who is told when others know of it.
#[derive(Debug, Default)]
pub(super) struct News {
    rows: BTreeSet<Arc<str>>,
    told: Vec<Done>,
    is_under_way: bool,
    quiet_until: Option<Instant>,
}

impl Book {
    pub(super) fn keeps_queue(&self) -> bool {
        self.plan.list == List::Queue
    }

    pub(super) fn hearing(&self) -> Hearing {
        if self.attention.hears {
            Hearing::Listening
        } else {
            Hearing::Deaf
        }
    }

    /// The waiter was refused, or need not ask to know that it will be.
    pub(super) fn has_to_wait(&mut self, waiter: &Waiter, now: Instant) {
        if !waiter.waits() || waiter.is_gone() {
            return;
        }
        self.attention.is_wanted = self.plan.ears == Ears::Given;
        self.attention.idle_since = None;
        let is_listed = match self.plan.list {
            List::None => false,
            List::Listeners => self.attention.hears,
            List::Queue => true,
        };
        if is_listed {
            self.line.join(waiter, now);
        }
    }

    pub(super) fn arrived(&mut self, arrivals: Vec<Arrival>) {
        let mut rows = BTreeSet::new();
        for arrival in arrivals {
            for row in arrival.rows.iter() {
                let Some(entry) = self.entries.get_mut(row) else {
                    continue;
                };
                let mut queue = entry.queue.iter_mut();
                if let Some(waiter) = queue.find(|waiter| waiter.number == arrival.number) {
                    waiter.ticket = arrival.ticket;
                    rows.insert(Arc::clone(row));
                }
            }
        }
        for row in rows {
            if let Some(entry) = self.entries.get_mut(&row) {
                entry.sort();
                entry.look_now();
            }
        }
    }

    /// In a queue those behind may be first now, here and elsewhere.
    pub(super) fn left(&mut self, leaves: &[Leave]) {
        if !self.keeps_queue() {
            return;
        }
        for row in leaves.iter().flat_map(|leave| leave.rows.iter()) {
            if let Some(entry) = self.entries.get_mut(row) {
                entry.look_now();
            }
            self.news.rows.insert(Arc::clone(row));
        }
    }

    pub(super) fn heard(&mut self, heard: Heard, now: Instant) {
        match heard {
            Heard::Free(hash) => {
                let wanted = self
                    .entries
                    .iter_mut()
                    .filter(|(_, entry)| entry.is_wanted());
                for (_, entry) in wanted.filter(|(row, _)| row_hash(row) == hash) {
                    entry.look_now();
                }
            }
            Heard::Listening => {
                self.attention.hears = true;
                self.line.all_again(now);
                self.look_everywhere();
            }
            Heard::Deaf => self.deafened(),
        }
    }

    pub(super) fn deafened(&mut self) {
        if !std::mem::take(&mut self.attention.hears) {
            return;
        }
        if self.plan.list == List::Listeners {
            self.line.leave_all();
        }
        self.look_everywhere();
    }

    fn look_everywhere(&mut self) {
        self.entries
            .values_mut()
            .for_each(super::waiter::Entry::look_now);
    }

    /// Whether to listen.
    pub(super) fn wants_to_hear(&mut self, now: Instant) -> bool {
        if !matches!(self.state, State::Open) {
            self.attention.is_wanted = false;
        }
        if !self.attention.is_wanted {
            return false;
        }
        if !self.wanted.is_empty() {
            self.attention.idle_since = None;
            return true;
        }
        let since = *self.attention.idle_since.get_or_insert(now);
        self.attention.is_wanted = now < since + LINGER;
        self.attention.is_wanted
    }

    pub(super) fn next_attention(&self) -> Option<Instant> {
        let since = self.attention.idle_since?;
        self.attention.is_wanted.then_some(since + LINGER)
    }

    /// Rows came free. `done` is told when those who wait for them are.
    pub(super) fn came_free(
        &mut self,
        rows: impl Iterator<Item = Arc<str>>,
        done: Option<Done>,
        now: Instant,
    ) {
        let is_quiet = self.news.quiet_until.is_some_and(|until| now < until);
        if self.plan.list == List::None || is_quiet {
            if let Some(done) = done {
                done.send(Ok(())).ok();
            }
            return;
        }
        self.news.rows.extend(rows);
        self.news.told.extend(done);
    }

    pub(super) fn next_news(&mut self) -> Option<(Vec<Arc<str>>, Vec<Done>)> {
        let news = &mut self.news;
        if news.is_under_way || news.is_empty() {
            return None;
        }
        news.is_under_way = true;
        let mut rows = Vec::new();
        while rows.len() < MAX_ROWS
            && let Some(row) = news.rows.pop_first()
        {
            rows.push(row);
        }
        let told = if news.rows.is_empty() {
            std::mem::take(&mut news.told)
        } else {
            Vec::new()
        };
        Some((rows, told))
    }

    pub(super) fn told(&mut self, told: Vec<Done>, answer: Result<()>, now: Instant) {
        self.news.is_under_way = false;
        let mut told = told;
        if let Err(error) = answer {
            tracing::warn!(
                backend = self.backend, %error,
                "those who wait were not told of a release, and learn of it by looking"
            );
            self.news.rows.clear();
            told.append(&mut self.news.told);
            self.news.quiet_until = Some(now + QUIET);
        }
        for done in told {
            done.send(Ok(())).ok();
        }
        self.settle_shut_down();
    }
}

impl News {
    pub(super) fn is_over(&self) -> bool {
        self.is_empty() && !self.is_under_way
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.told.is_empty()
    }
}
