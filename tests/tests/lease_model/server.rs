//! What the database does.

use crate::{
    bugs::Bug,
    model::Protocol,
    state::{Acquisition, Fault, Flight, Place, Row, State, TTL, What},
};

impl Protocol {
    /// Whether the row is taken for this acquisition's.
    fn is_of(&self, row: Row, acquisition: Acquisition) -> bool {
        let share = |holder: Acquisition| holder.client < 2 && acquisition.client < 2;
        row.holder.is_some_and(|holder| {
            holder == acquisition || (self.has(Bug::SharedOwner) && share(holder))
        })
    }

    /// How long a lease is remembered to have run out.
    pub(crate) fn longest_ago(&self) -> i8 {
        if self.has(Bug::ClockBeforeTheLock) {
            TTL
        } else {
            0
        }
    }

    /// It comes to a row that may be locked.
    pub(crate) fn arrive(&self, state: &mut State, client: usize, flight: usize) {
        let draws = self.has(Bug::TokenBeforeTheLock);
        let flight = &mut state.clients[client].flights[flight];
        state.sequence += u8::from(draws);
        let drawn = if draws { state.sequence } else { 0 };
        flight.place = Place::AwaitsTheRow { looked: 0, drawn };
    }

    /// It gets the lock of the row, or, where it is missing, of its insertion. Then it looks at
    /// the clock, and whether it may go on. One who may not is told so; that it goes on believing
    /// what it believes is what it would do if that answer were lost.
    pub(crate) fn lock(&self, state: &mut State, client: usize, index: usize) {
        let flight = state.clients[client].flights[index];
        let serial = flight.serial;
        let (looked, drawn) = match flight.place {
            Place::AwaitsTheRow { looked, drawn } if self.has(Bug::ClockBeforeTheLock) => {
                (looked, drawn)
            }
            Place::AwaitsTheRow { drawn, .. } => (0, drawn),
            _ => (0, 0),
        };
        let row = state.row;
        let has_run_out = |row: Row| row.left + looked <= 0;
        let goes_on = match flight.what {
            What::Acquire => row.is_none_or(|row| row.holder.is_none() || has_run_out(row)),
            What::Renew { .. } => row.is_some_and(|row| {
                (self.is_of(row, Acquisition { client, serial }) || self.has(Bug::RenewalByName))
                    && (!has_run_out(row) || self.has(Bug::RenewalOfExpired))
                    && row.holder.is_some()
            }),
            What::GiveBack => false,
        };
        if !goes_on {
            state.clients[client].flights.remove(index);
            return;
        }
        state.fault = match flight.what {
            What::Acquire if looked >= TTL => Some(Fault::BornExpired),
            What::Renew { .. } if row.is_some_and(|row| row.left <= 0) => Some(Fault::Revived),
            _ => None,
        };
        state.clients[client].flights[index].place = Place::Locks { looked, drawn };
    }

    /// It writes the row, commits, and answers whoever still listens.
    pub(crate) fn commit(&self, state: &mut State, client: usize, index: usize) {
        let flight = state.clients[client].flights[index];
        let Place::Locks { looked, drawn } = flight.place else {
            return;
        };
        let mut token = state.row.map_or(0, |row| row.token);
        let left = |ttl: i8| (ttl - looked).max(-self.longest_ago());
        if flight.what == What::Acquire {
            token = self.draw(state, token, drawn);
            let serial = flight.serial;
            state.row = Some(Row {
                holder: Some(Acquisition { client, serial }),
                token,
                left: left(TTL),
            });
        } else if let (What::Renew { ttl }, Some(row)) = (flight.what, &mut state.row) {
            row.left = if self.shortens() {
                left(ttl)
            } else {
                left(ttl).max(row.left)
            };
        }
        let flights = &mut state.clients[client].flights;
        if flight.is_awaited {
            let token = if self.has_resource { token } else { 0 };
            flights[index].place = Place::Answered { token };
        } else {
            flights.remove(index);
        }
    }

    pub(crate) fn shortens(&self) -> bool {
        self.has(Bug::ShorterFromTheAnswer) || self.has(Bug::ShorterFromTheSending)
    }

    fn draw(&self, state: &mut State, in_row: u8, drawn: u8) -> u8 {
        let token = if self.has(Bug::TokenBeforeTheLock) {
            drawn.max(in_row + 1)
        } else if self.has(Bug::SweepForgetsTheFloor) {
            in_row + 1
        } else {
            state.sequence += 1;
            state.sequence.max(in_row + 1)
        };
        if token <= state.highest {
            state.fault = Some(Fault::TokenWentBack);
        }
        state.highest = state.highest.max(token);
        token
    }

    /// With `again`, its answer is lost, and it is sent once more.
    pub(crate) fn give_back(&self, state: &mut State, client: usize, index: usize, again: bool) {
        let serial = state.clients[client].flights[index].serial;
        let acquisition = Acquisition { client, serial };
        if let Some(row) = state.row
            && row.holder.is_some()
            && (self.is_of(row, acquisition) || self.has(Bug::ReleaseByName))
        {
            if row.holder != Some(acquisition) && row.left > 0 {
                state.fault = Some(Fault::FreedAnothers);
            }
            state.row = Some(Row {
                holder: None,
                left: 0,
                ..row
            });
        }
        if !again {
            state.clients[client].flights.remove(index);
        }
    }

    /// At once, where the real one waits for far longer than any statement lives.
    pub(crate) fn may_sweep(&self, state: &State) -> bool {
        let is_free = |row: Row| row.holder.is_none() || row.left <= 0;
        state.row.is_some_and(is_free) && !state.is_locked()
    }

    /// The server dies and comes back. What was committed stays, also of the sequence; the
    /// statement in progress comes to nothing, and its client sees an error. Those on the way can
    /// be lost at any time.
    pub(crate) fn restart(&self, state: &mut State) {
        for client in &mut state.clients {
            let is_in_progress = |flight: &&mut Flight| matches!(flight.place, Place::Locks { .. });
            let Some(flight) = client.flights.iter_mut().find(is_in_progress) else {
                continue;
            };
            if flight.is_awaited && flight.what == What::Acquire {
                // all that its client knows is that there was an error
                flight.what = What::GiveBack;
                flight.place = Place::OnTheWay;
                flight.is_awaited = false;
            } else {
                let lost = *flight;
                client.flights.retain(|flight| *flight != lost);
            }
        }
    }
}
