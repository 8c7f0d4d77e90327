//! The protocol as stateright takes it: what can happen next, and what must hold always.

use stateright::{Model, Property};

use crate::{
    bugs::Bug,
    properties::{happenings, safety},
    state::{CLIENTS, Place, SHORT_TTL, State, TTL, What},
};

/// The protocol, or one with a bug.
#[derive(Debug, Clone)]
pub(crate) struct Protocol {
    pub(crate) bug: Option<Bug>,
    /// How many messages of a client can be under way at a time.
    pub(crate) flights_of_one: usize,
    pub(crate) flights_of_all: usize,
    /// Whether a renewal may ask for less than the lease has left.
    pub(crate) extends: bool,
    /// Whether the server's clock steps forward, which is the exception.
    pub(crate) clock_steps: bool,
    /// Whether a resource checks tokens.
    pub(crate) has_resource: bool,
    pub(crate) counts_holders: bool,
    /// Whether states are one that differ in which client is which. There are fewer of them then,
    /// and the numbers of clients in a run change from step to step.
    pub(crate) any_client: bool,
    /// Of the properties.
    pub(crate) looked_for: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    StepClock,
    Acquire(usize),
    Renew(usize, i8),
    Release(usize),
    Crash(usize),
    GiveUp(usize, usize),
    Receive(usize, usize),
    /// Never carried out. Of one whose answer is awaited, this is to be on the way for ever.
    Lose(usize, usize),
    Arrive(usize, usize),
    Lock(usize, usize),
    Commit(usize, usize),
    GiveBack(usize, usize),
    GiveBackAgain(usize, usize),
    Write(usize),
    Sweep,
    Restart,
}

impl Protocol {
    pub(crate) fn sound(flights_of_one: usize, flights_of_all: usize) -> Self {
        Self {
            bug: None,
            flights_of_one,
            flights_of_all,
            extends: false,
            clock_steps: false,
            has_resource: false,
            counts_holders: false,
            any_client: true,
            looked_for: Vec::new(),
        }
    }

    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn arrives_first(&self) -> bool {
        self.has(Bug::ClockBeforeTheLock) || self.has(Bug::TokenBeforeTheLock)
    }

    fn client_actions(&self, state: &State, client: usize, actions: &mut Vec<Action>) {
        if self.may_acquire(state, client) {
            actions.push(Action::Acquire(client));
        }
        if self.may_renew(state, client) {
            actions.push(Action::Renew(client, TTL));
            if self.extends {
                actions.push(Action::Renew(client, SHORT_TTL));
            }
        }
        if self.may_release(state, client) {
            actions.push(Action::Release(client));
        }
        if self.may_crash(state, client) {
            actions.push(Action::Crash(client));
        }
        // also by one whose deadline has passed, and who has not looked
        if self.has_resource && state.clients[client].lease.is_some() {
            actions.push(Action::Write(client));
        }
    }

    fn flight_actions(
        &self,
        state: &State,
        client: usize,
        index: usize,
        actions: &mut Vec<Action>,
    ) {
        let flight = state.clients[client].flights[index];
        let is_before = |place| matches!(place, Place::OnTheWay | Place::AwaitsTheRow { .. });
        if self.may_give_up(state, client, flight) {
            actions.push(Action::GiveUp(client, index));
        }
        if !flight.is_awaited && is_before(flight.place) {
            actions.push(Action::Lose(client, index));
        }
        match flight.place {
            Place::OnTheWay if flight.what == What::GiveBack => {
                if !state.is_locked() {
                    actions.push(Action::GiveBack(client, index));
                    actions.push(Action::GiveBackAgain(client, index));
                }
            }
            Place::OnTheWay if self.arrives_first() => actions.push(Action::Arrive(client, index)),
            Place::OnTheWay | Place::AwaitsTheRow { .. } => {
                if !state.is_locked() {
                    actions.push(Action::Lock(client, index));
                }
            }
            Place::Locks { .. } => actions.push(Action::Commit(client, index)),
            Place::Answered { .. } => actions.push(Action::Receive(client, index)),
        }
    }

    fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::Tick => state.tick(self.longest_ago()),
            Action::StepClock => state.step_clock(),
            Action::Acquire(client) => self.acquire(state, client),
            Action::Renew(client, ttl) => self.renew(state, client, ttl),
            Action::Release(client) => self.release(state, client),
            Action::Crash(client) => self.crash(state, client),
            Action::GiveUp(client, index) => {
                let flight = state.clients[client].flights[index];
                self.give_up(state, client, flight);
            }
            Action::Receive(client, index) => {
                let flight = state.clients[client].flights[index];
                if let Place::Answered { token } = flight.place {
                    self.receive(state, client, flight, token);
                }
            }
            Action::Lose(client, index) => {
                state.clients[client].flights.remove(index);
            }
            Action::Arrive(client, index) => self.arrive(state, client, index),
            Action::Lock(client, index) => self.lock(state, client, index),
            Action::Commit(client, index) => self.commit(state, client, index),
            Action::GiveBack(client, index) => self.give_back(state, client, index, false),
            Action::GiveBackAgain(client, index) => self.give_back(state, client, index, true),
            Action::Write(client) => {
                // a lower one is refused
                let token = state.clients[client].lease.map_or(0, |lease| lease.token);
                state.resource = state.resource.max(token);
            }
            Action::Sweep => state.row = None,
            Action::Restart => self.restart(state),
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        if self.clock_steps {
            actions.push(Action::StepClock);
        }
        for client in 0..CLIENTS {
            self.client_actions(state, client, actions);
            for index in 0..state.clients[client].flights.len() {
                self.flight_actions(state, client, index, actions);
            }
        }
        if self.may_sweep(state) {
            actions.push(Action::Sweep);
        }
        if state.is_locked() {
            actions.push(Action::Restart);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = State {
            fault: None,
            ..last.clone()
        };
        self.act(&mut state, action);
        state.normalise(self.any_client);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = safety();
        properties.extend(happenings());
        properties.retain(|property| self.looked_for.contains(&property.name));
        properties
    }
}
