//! What a client does.

use crate::{
    bugs::Bug,
    model::Protocol,
    state::{Client, Flight, Lease, Place, State, TTL, What},
};

impl Client {
    fn awaits(&self, is_meant: impl Fn(What) -> bool) -> bool {
        let mut flights = self.flights.iter();
        flights.any(|flight| flight.is_awaited && is_meant(flight.what))
    }

    fn send(&mut self, what: What, serial: u8) {
        self.flights.push(Flight {
            what,
            place: Place::OnTheWay,
            age: 0,
            is_awaited: what != What::GiveBack,
            serial,
        });
    }

    /// Nobody waits for these answers any more.
    fn ignore(&mut self, is_meant: impl Fn(&Flight) -> bool) {
        for flight in &mut self.flights {
            if is_meant(flight) {
                flight.is_awaited = false;
            }
        }
        self.flights
            .retain(|flight| flight.is_awaited || !matches!(flight.place, Place::Answered { .. }));
    }
}

impl Protocol {
    fn has_room(&self, state: &State, client: usize) -> bool {
        state.clients[client].flights.len() < self.flights_of_one
            && state.in_flight() < self.flights_of_all
    }

    pub(crate) fn may_acquire(&self, state: &State, client: usize) -> bool {
        let one = &state.clients[client];
        one.lease.is_none()
            && !one.awaits(|what| what == What::Acquire)
            && self.has_room(state, client)
    }

    pub(crate) fn acquire(&self, state: &mut State, client: usize) {
        let holder = state.row.and_then(|row| row.holder);
        let in_row = holder.filter(|holder| holder.client == client);
        let one = &mut state.clients[client];
        let mut serial = 0;
        while one.flights.iter().any(|flight| flight.serial == serial)
            || in_row.is_some_and(|holder| holder.serial == serial)
        {
            serial += 1;
        }
        one.send(What::Acquire, serial);
    }

    pub(crate) fn may_renew(&self, state: &State, client: usize) -> bool {
        let one = &state.clients[client];
        one.lease.is_some_and(|lease| lease.left > 0)
            && !one.awaits(|what| matches!(what, What::Renew { .. }))
            && self.has_room(state, client)
    }

    pub(crate) fn renew(&self, state: &mut State, client: usize, ttl: i8) {
        let one = &mut state.clients[client];
        if let Some(lease) = &mut one.lease {
            if self.has(Bug::ShorterFromTheSending) {
                lease.left = lease.left.min(ttl);
            }
            let serial = lease.serial;
            one.send(What::Renew { ttl }, serial);
        }
    }

    /// Also of one whose deadline has passed, once its holder looks: the database may still have
    /// it.
    pub(crate) fn may_release(&self, state: &State, client: usize) -> bool {
        state.clients[client].lease.is_some() && self.has_room(state, client)
    }

    pub(crate) fn release(&self, state: &mut State, client: usize) {
        let one = &mut state.clients[client];
        if let Some(lease) = one.lease.take() {
            one.ignore(|flight| flight.serial == lease.serial);
            one.send(What::GiveBack, lease.serial);
        }
    }

    pub(crate) fn may_crash(&self, state: &State, client: usize) -> bool {
        let one = &state.clients[client];
        one.lease.is_some() || one.awaits(|_| true)
    }

    /// It forgets everything, and starts again. What it has sent is still on its way.
    pub(crate) fn crash(&self, state: &mut State, client: usize) {
        let one = &mut state.clients[client];
        one.lease = None;
        one.ignore(|_| true);
    }

    /// The answer is lost, or late: it may have been carried out, or be yet to be, or never.
    pub(crate) fn may_give_up(&self, state: &State, client: usize, flight: Flight) -> bool {
        let is_answered = matches!(flight.place, Place::Answered { .. });
        let undoes = flight.what == What::Acquire;
        flight.is_awaited && (is_answered || !undoes || self.has_room(state, client))
    }

    /// What an acquisition may have taken is given back; a renewal can be sent again.
    pub(crate) fn give_up(&self, state: &mut State, client: usize, flight: Flight) {
        let one = &mut state.clients[client];
        one.ignore(|other| *other == flight);
        if flight.what == What::Acquire {
            one.send(What::GiveBack, flight.serial);
        }
    }

    pub(crate) fn receive(&self, state: &mut State, client: usize, flight: Flight, token: u8) {
        let one = &mut state.clients[client];
        one.flights.retain(|other| *other != flight);
        let left = |ttl: i8| {
            let age = if self.has(Bug::DeadlineFromTheAnswer) {
                0
            } else {
                flight.age
            };
            (ttl - age).max(0)
        };
        match flight.what {
            What::Acquire if left(TTL) == 0 => one.send(What::GiveBack, flight.serial),
            What::Acquire => {
                one.lease = Some(Lease {
                    serial: flight.serial,
                    token: if self.has_resource { token } else { 0 },
                    left: left(TTL),
                });
                if self.counts_holders && state.held == client {
                    state.held += 1;
                }
            }
            // also of a deadline that has passed since: nobody has looked yet, or the lease would
            // have been released
            What::Renew { ttl } => {
                if let Some(lease) = one
                    .lease
                    .as_mut()
                    .filter(|lease| lease.serial == flight.serial)
                {
                    let now = if self.shortens() { 0 } else { lease.left };
                    lease.left = left(ttl).max(now);
                }
            }
            What::GiveBack => {}
        }
    }
}
