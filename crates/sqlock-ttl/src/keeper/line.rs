//! The places of this process's waiters in the lines that all processes share.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::waiter::Waiter;
use crate::store::{Hearing, Join, Leave, Place};

#[derive(Debug)]
pub(super) struct Line {
    /// Before the number of a waiter: no other process has the same.
    process: Arc<str>,
    /// For how long a waiter that gives no sign of life is taken to be alive.
    lives: Duration,
    places: HashMap<u64, Standing>,
    /// Those to be written, in order of arrival, and those to be written again.
    due: BTreeSet<(Instant, u64)>,
    leaving: Vec<Leave>,
}

#[derive(Debug)]
struct Standing {
    waiter: Arc<str>,
    rows: Arc<[Arc<str>]>,
    priority: i16,
    label: Option<Arc<str>>,
    ticket: Option<i64>,
    state: State,
    /// Its place in [`Line::due`].
    at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not in the database, or not as it is: it must not look before it is, or the release that
    /// comes between would tell nobody.
    Asked,
    /// On its way.
    Sent,
    Written,
}

/// One whose place was written for the first time, or anew.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) number: u64,
    pub(super) rows: Arc<[Arc<str>]>,
    pub(super) ticket: Option<i64>,
}

impl Line {
    pub(super) fn new(process: Arc<str>, lives: Duration) -> Self {
        Self {
            process,
            lives,
            places: HashMap::new(),
            due: BTreeSet::new(),
            leaving: Vec::new(),
        }
    }

    /// Takes a place, unless the waiter has one.
    pub(super) fn join(&mut self, waiter: &Waiter, now: Instant) {
        if self.places.contains_key(&waiter.number) {
            return;
        }
        self.due.insert((now, waiter.number));
        let place = Standing {
            waiter: format!("{}-{}", self.process, waiter.number).into(),
            rows: Arc::clone(&waiter.rows),
            priority: waiter.request.priority(),
            label: waiter.request.label().map(Arc::from),
            ticket: None,
            state: State::Asked,
            at: now,
        };
        self.places.insert(waiter.number, place);
    }

    /// The waiter does not wait any more: the rows at which it stood.
    pub(super) fn leave(&mut self, number: u64) -> Option<Arc<[Arc<str>]>> {
        let place = self.granted(number)?;
        let rows = Arc::clone(&place.rows);
        self.leaving.push(Leave {
            waiter: place.waiter,
            rows: place.rows,
        });
        Some(rows)
    }

    pub(super) fn leave_all(&mut self) {
        let numbers: Vec<u64> = self.places.keys().copied().collect();
        for number in numbers {
            self.leave(number);
        }
    }

    /// With the grant its place was given up.
    pub(super) fn won(&mut self, number: u64) {
        self.granted(number);
    }

    fn granted(&mut self, number: u64) -> Option<Standing> {
        let place = self.places.remove(&number)?;
        self.due.remove(&(place.at, number));
        Some(place)
    }

    /// Its place may not be there any more. It gets the one that it had.
    pub(super) fn again(&mut self, number: u64, now: Instant) {
        if let Some(place) = self.places.get_mut(&number) {
            place.state = State::Asked;
            self.due.remove(&(place.at, number));
            place.at = now;
            self.due.insert((now, number));
        }
    }

    pub(super) fn all_again(&mut self, now: Instant) {
        let numbers: Vec<u64> = self.places.keys().copied().collect();
        for number in numbers {
            self.again(number, now);
        }
    }

    /// Whether the waiter may look: it has no place to be written first.
    pub(super) fn may_look(&self, number: u64) -> bool {
        let place = self.places.get(&number);
        place.is_none_or(|place| place.state == State::Written)
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.places.contains_key(&number)
    }

    pub(super) fn place(&self, number: u64) -> Option<Place> {
        let place = self.places.get(&number)?;
        Some(Place {
            waiter: Arc::clone(&place.waiter),
            priority: place.priority,
            ticket: place.ticket?,
        })
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let first = self.due.first().map(|(at, _)| *at);
        let leaving = (!self.leaving.is_empty()).then(Instant::now);
        first.into_iter().chain(leaving).min()
    }

    pub(super) fn take_leaves(&mut self) -> Vec<Leave> {
        std::mem::take(&mut self.leaving)
    }

    pub(super) fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Those to be written now, of so many rows at most.
    pub(super) fn take_joins(
        &mut self,
        now: Instant,
        max_rows: usize,
        hearing: Hearing,
    ) -> Vec<(u64, Join)> {
        if self.due.first().is_none_or(|(at, _)| *at > now) {
            return Vec::new();
        }
        let mut rows = 0;
        let mut taken = Vec::new();
        for (at, number) in &self.due {
            // those that will be due soon go with them, so that they gather
            if *at > now + self.lives / 6 || rows >= max_rows {
                break;
            }
            let Some(place) = self.places.get(number) else {
                continue;
            };
            rows += place.rows.len();
            let join = Join {
                waiter: Arc::clone(&place.waiter),
                rows: Arc::clone(&place.rows),
                priority: place.priority,
                ticket: place.ticket,
                lives: self.lives,
                hearing,
                label: place.label.clone(),
            };
            taken.push((*number, join));
        }
        let next = now + self.lives / 3;
        for (number, _) in &taken {
            self.put_off(*number, next);
            if let Some(place) = self.places.get_mut(number)
                && place.state == State::Asked
            {
                place.state = State::Sent;
            }
        }
        taken
    }

    fn put_off(&mut self, number: u64, at: Instant) {
        if let Some(place) = self.places.get_mut(&number) {
            self.due.remove(&(place.at, number));
            place.at = at;
            self.due.insert((at, number));
        }
    }

    /// The places are in the database. Those who waited for that may look now.
    pub(super) fn joined(
        &mut self,
        joins: &[(u64, Join)],
        tickets: Vec<Option<i64>>,
    ) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        for ((number, join), ticket) in joins.iter().zip(tickets) {
            let Some(place) = self.places.get_mut(number) else {
                continue;
            };
            place.ticket = ticket.or(place.ticket);
            // one that was asked for meanwhile is written once more
            if place.state == State::Sent {
                place.state = State::Written;
                arrivals.push(Arrival {
                    number: *number,
                    rows: Arc::clone(&join.rows),
                    ticket: place.ticket,
                });
            }
        }
        arrivals
    }

    /// What became of these, and of all other places, is not known: the server may have crashed.
    pub(super) fn failed(&mut self, leaves: Vec<Leave>, now: Instant) {
        self.all_again(now);
        self.leaving.extend(leaves);
    }
}
