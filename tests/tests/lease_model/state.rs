//! What there is in the model: three clients, their messages, and one row.
//!
//! Every time is a number of ticks from now, and tokens count only by their order, so that runs of
//! any length have finitely many states, and nothing bounds how long they go on.

pub(crate) const CLIENTS: usize = 3;
/// In ticks. A holder's margin is none, as the clocks of the model run at the same pace: what the
/// model finds safe does not rest on it.
pub(crate) const TTL: i8 = 2;
/// What an extension may ask for, where the model has extensions.
pub(crate) const SHORT_TTL: i8 = 1;

/// One attempt of one client to acquire, which is what the random owner in the row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Acquisition {
    pub(crate) client: usize,
    /// The lowest that means nothing else any more.
    pub(crate) serial: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct State {
    pub(crate) clients: [Client; CLIENTS],
    pub(crate) row: Option<Row>,
    /// The last number that the database's sequence gave.
    pub(crate) sequence: u8,
    /// The highest token that was ever granted.
    pub(crate) highest: u8,
    /// The highest token that the protected resource has seen.
    pub(crate) resource: u8,
    /// How many clients have held the lease, in the order of their numbers.
    pub(crate) held: usize,
    /// What has gone wrong in the last step.
    pub(crate) fault: Option<Fault>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Row {
    pub(crate) holder: Option<Acquisition>,
    pub(crate) token: u8,
    /// Until it runs out. Nothing remains of one without a holder.
    pub(crate) left: i8,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Client {
    pub(crate) lease: Option<Lease>,
    pub(crate) flights: Vec<Flight>,
}

/// What a client thinks that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lease {
    pub(crate) serial: u8,
    pub(crate) token: u8,
    /// Until its own deadline. At none it does not believe any more, whether or not it has had the
    /// time to look.
    pub(crate) left: i8,
}

/// A message to the database, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Flight {
    pub(crate) what: What,
    pub(crate) place: Place,
    /// Since before it was sent.
    pub(crate) age: i8,
    /// Whether its client waits for the answer. It may be carried out all the same.
    pub(crate) is_awaited: bool,
    pub(crate) serial: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum What {
    Acquire,
    Renew { ttl: i8 },
    GiveBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// It can be carried out at any time from now, or never.
    OnTheWay,
    /// Only where a bug makes a difference between that and being on the way.
    AwaitsTheRow { looked: i8, drawn: u8 },
    /// It has the row locked, and has looked at the clock so many ticks ago.
    Locks { looked: i8, drawn: u8 },
    /// It was carried out, and the answer is on its way.
    Answered { token: u8 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// A renewal found a lease that had run out, and prolonged it.
    Revived,
    /// A release gave back what another holds.
    FreedAnothers,
    /// A grant brought no higher token than all before.
    TokenWentBack,
    /// A lease was over before its row was had.
    BornExpired,
}

impl State {
    pub(crate) fn is_locked(&self) -> bool {
        let mut flights = self.clients.iter().flat_map(|client| &client.flights);
        flights.any(|flight| matches!(flight.place, Place::Locks { .. }))
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.clients.iter().map(|client| client.flights.len()).sum()
    }

    pub(crate) fn believers(&self) -> impl Iterator<Item = (usize, Lease)> + '_ {
        let leases = self.clients.iter().map(|client| client.lease);
        leases
            .enumerate()
            .filter_map(|(client, lease)| Some((client, lease.filter(|lease| lease.left > 0)?)))
    }

    /// A tick of all clocks. They may run at any time, as everything else may take any time.
    pub(crate) fn tick(&mut self, longest_ago: i8) {
        if let Some(row) = &mut self.row
            && row.holder.is_some()
        {
            row.left = (row.left - 1).max(-longest_ago);
        }
        for client in &mut self.clients {
            if let Some(lease) = &mut client.lease {
                lease.left = (lease.left - 1).max(0);
            }
            for flight in &mut client.flights {
                flight.age = (flight.age + 1).min(TTL);
                flight.place.tick();
            }
        }
    }

    /// A step of the server's clock alone, forward.
    pub(crate) fn step_clock(&mut self) {
        if let Some(row) = &mut self.row {
            row.left = (row.left - 1).max(0);
        }
        let flights = self
            .clients
            .iter_mut()
            .flat_map(|client| &mut client.flights);
        flights.for_each(|flight| flight.place.tick());
    }
}

impl Place {
    fn tick(&mut self) {
        if let Self::AwaitsTheRow { looked, .. } | Self::Locks { looked, .. } = self {
            *looked = (*looked + 1).min(TTL);
        }
    }
}
