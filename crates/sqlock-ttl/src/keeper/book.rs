//! Who in this process holds and wants which lease. Nothing here does I/O.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use sqlock_core::{Error, LostSender};
use tokio::{sync::mpsc, time::Instant};

use super::{
    line::Line,
    waiter::{Entry, Waiter},
    waiting::{Attention, News},
};
use crate::{
    clock::Deadline,
    command::{Command, Done},
    options::{LeaseOptions, check_request},
    row_name::row_name,
    store::{GiveBack, LeaseId, Plan},
};

#[derive(Debug)]
pub(super) struct Book {
    pub(super) backend: &'static str,
    /// Weak, or the keeper would keep itself alive.
    pub(super) keeper: mpsc::WeakUnboundedSender<Command>,
    pub(super) options: LeaseOptions,
    pub(super) entries: HashMap<Arc<str>, Entry>,
    /// The rows whose queues are not empty.
    pub(super) wanted: HashSet<Arc<str>>,
    pub(super) leases: HashMap<u64, Lease>,
    /// No lease ends before. A bound, so that ten thousand leases are not looked at all the time.
    pub(super) no_expiry_before: Option<Instant>,
    pub(super) last_grant: u64,
    /// When each lease is to be renewed, the earliest first.
    pub(super) renewals: BTreeSet<(Instant, u64)>,
    pub(super) is_renewing: bool,
    /// Leases on their way back.
    pub(super) releases: VecDeque<Release>,
    pub(super) is_exchanging: bool,
    /// The database cannot be reached since then, and is tried again at the second.
    pub(super) outage: Option<Outage>,
    pub(super) state: State,
    pub(super) plan: Plan,
    pub(super) line: Line,
    pub(super) attention: Attention,
    pub(super) news: News,
}

/// A lease that this process holds.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) ids: Vec<LeaseId>,
    pub(super) ttl: Duration,
    pub(super) hold_at_least: Duration,
    pub(super) granted: Instant,
    pub(super) deadline: Arc<Deadline>,
    pub(super) lost: LostSender,
    pub(super) key: sqlock_core::LockKey,
    /// Its place in [`Book::renewals`].
    pub(super) renew_at: Instant,
    /// Told at the next renewal.
    pub(super) extended: Vec<Done>,
}

/// A lease on its way back, and who is told.
#[derive(Debug)]
pub(super) struct Release {
    pub(super) items: Vec<GiveBack>,
    pub(super) done: Option<(Done, sqlock_core::LockKey)>,
    /// Somebody had its row locked.
    pub(super) not_before: Option<Instant>,
    /// After that it has run out, and nothing need be given back.
    pub(super) until: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Outage {
    pub(super) began: Instant,
    pub(super) again_at: Instant,
    pub(super) pause: Duration,
}

#[derive(Debug)]
pub(super) enum State {
    Open,
    /// No request is taken; these are told when everything is back.
    ShuttingDown(Vec<Done>),
    /// The connections are being closed.
    Closing(Vec<Done>),
    Closed,
}

impl Book {
    pub(super) fn new(
        backend: &'static str,
        keeper: mpsc::WeakUnboundedSender<Command>,
        options: LeaseOptions,
        plan: Plan,
        process: Arc<str>,
    ) -> Self {
        Self {
            plan,
            line: Line::new(process, options.waiter_ttl),
            attention: Attention::default(),
            news: News::default(),
            backend,
            keeper,
            options,
            entries: HashMap::new(),
            wanted: HashSet::new(),
            leases: HashMap::new(),
            no_expiry_before: None,
            last_grant: 0,
            renewals: BTreeSet::new(),
            is_renewing: false,
            releases: VecDeque::new(),
            is_exchanging: false,
            outage: None,
            state: State::Open,
        }
    }

    pub(super) fn take_in(&mut self, command: Command) {
        match command {
            Command::Acquire {
                number,
                request,
                answer,
            } => self.request(Waiter::new(number, request, answer)),
            Command::Forget { number, request } => {
                for row in request.keys().iter().map(row_name) {
                    if let Some(entry) = self.entries.get_mut(&row) {
                        entry.queue.retain(|waiter| waiter.number != number);
                        self.tidy(&row);
                    }
                }
                self.line.leave(number);
            }
            Command::Release { grant, done } => self.release(grant, done),
            Command::Extend { grant, ttl, done } => self.extend(grant, ttl, done),
            Command::ShutDown { done } => self.shut_down(done),
        }
    }

    fn request(&mut self, waiter: Waiter) {
        if let Err(error) = check_request(&waiter.request) {
            waiter.answer.send(Err(error)).ok();
        } else if matches!(self.state, State::Open) {
            let row = waiter.first_row();
            if !waiter.waits() {
                // those who wait can wait long for their next look
                self.entries.entry(Arc::clone(&row)).or_default().look_at = None;
            } else if self.keeps_queue() && self.is_behind_others(&waiter) {
                self.has_to_wait(&waiter, Instant::now());
            }
            self.enqueue(row, waiter);
        } else {
            waiter.answer.send(Err(self.was_shut_down())).ok();
        }
    }

    fn is_behind_others(&self, waiter: &Waiter) -> bool {
        let mut entries = waiter.rows.iter().filter_map(|row| self.entries.get(row));
        entries.any(|entry| entry.held_by.is_some() || entry.is_wanted())
    }

    pub(super) fn enqueue(&mut self, row: Arc<str>, waiter: Waiter) {
        self.wanted.insert(Arc::clone(&row));
        self.entries.entry(row).or_default().enqueue(waiter);
    }

    /// Forgets what there is nothing to remember of.
    pub(super) fn tidy(&mut self, row: &Arc<str>) {
        let Some(entry) = self.entries.get(row) else {
            return;
        };
        if entry.queue.is_empty() {
            self.wanted.remove(row);
        }
        if entry.is_idle() {
            self.entries.remove(row);
        }
    }

    pub(super) fn was_shut_down(&self) -> Error {
        Error::ShutDown {
            backend: self.backend,
        }
    }

    /// When there is something to do, though nobody asks for anything.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let renewal = (!self.is_renewing)
            .then(|| self.renewals.first().map(|(at, _)| *at))
            .flatten();
        let due = [
            renewal,
            self.next_exchange_due(),
            self.no_expiry_before,
            self.next_attention(),
        ];
        due.into_iter().flatten().min()
    }

    fn next_exchange_due(&self) -> Option<Instant> {
        if self.is_exchanging {
            return None;
        }
        let wanted = self.wanted.iter().filter_map(|row| self.entries.get(row));
        let wanted = wanted.filter(|entry| entry.held_by.is_none() && !entry.is_claimed);
        let look = wanted.filter_map(|entry| entry.look_at);
        let again = self
            .releases
            .iter()
            .filter_map(|release| release.not_before);
        let look = look.chain(again).chain(self.line.next_due()).min();
        match self.outage {
            None => look,
            Some(outage) if self.releases.is_empty() => look.map(|at| at.max(outage.again_at)),
            Some(outage) => Some(outage.again_at),
        }
    }

    /// Something is still to be given back, or to be told.
    pub(super) fn is_leaving(&self) -> bool {
        !self.releases.is_empty() || self.line.is_leaving() || !self.news.is_over()
    }

    pub(super) fn is_out_of_reach(&self) -> bool {
        self.outage.is_some()
    }
}
