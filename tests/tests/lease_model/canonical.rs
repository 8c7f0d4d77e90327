//! One state of all that differ in names only.

use crate::state::{Client, Place, State};

impl State {
    /// Names that carry no meaning get the lowest numbers. With `any_client`, clients are
    /// exchanged for one another too.
    pub(crate) fn normalise(&mut self, any_client: bool) {
        self.rank_tokens();
        for (number, client) in self.clients.iter_mut().enumerate() {
            for flight in &mut client.flights {
                if !flight.is_awaited {
                    flight.age = 0;
                }
            }
            client.flights.sort_unstable();
            let row = self.row.as_mut().and_then(|row| row.holder.as_mut());
            let held = row.filter(|holder| holder.client == number);
            renumber(client, held.map(|holder| &mut holder.serial));
        }
        if any_client {
            self.sort_clients();
        }
    }

    /// A token is drawn above all others, so that only their order matters.
    fn rank_tokens(&mut self) {
        let mut seen = 0_u32;
        self.each_token(&mut |token| seen |= 1 << *token);
        self.each_token(&mut |token| {
            // none is none
            let lower = (seen >> 1) & ((1 << *token) - 1);
            *token = u8::try_from(lower.count_ones()).unwrap_or(u8::MAX);
        });
    }

    fn each_token(&mut self, visit: &mut impl FnMut(&mut u8)) {
        visit(&mut self.sequence);
        visit(&mut self.highest);
        visit(&mut self.resource);
        if let Some(row) = &mut self.row {
            visit(&mut row.token);
        }
        for client in &mut self.clients {
            if let Some(lease) = &mut client.lease {
                visit(&mut lease.token);
            }
            for flight in &mut client.flights {
                match &mut flight.place {
                    Place::AwaitsTheRow { drawn: token, .. }
                    | Place::Locks { drawn: token, .. }
                    | Place::Answered { token } => visit(token),
                    Place::OnTheWay => {}
                }
            }
        }
    }

    fn sort_clients(&mut self) {
        let holder = self.row.and_then(|row| row.holder);
        let is_holder = |client: usize| holder.is_some_and(|holder| holder.client == client);
        let mut order = [0, 1, 2];
        order.sort_by_key(|client| (&self.clients[*client], is_holder(*client)));
        if order == [0, 1, 2] {
            return;
        }
        self.clients = order.map(|client| std::mem::take(&mut self.clients[client]));
        if let Some(holder) = self.row.as_mut().and_then(|row| row.holder.as_mut())
            && let Some(place) = order.iter().position(|client| *client == holder.client)
        {
            holder.client = place;
        }
    }
}

fn renumber(client: &mut Client, held: Option<&mut u8>) {
    let mut order = [u8::MAX; 8];
    let mut next = 0;
    let mut rename = |serial: &mut u8| {
        let new = &mut order[usize::from(*serial)];
        if *new == u8::MAX {
            *new = next;
            next += 1;
        }
        *serial = *new;
    };
    if let Some(lease) = &mut client.lease {
        rename(&mut lease.serial);
    }
    client
        .flights
        .iter_mut()
        .for_each(|flight| rename(&mut flight.serial));
    held.map(rename);
}
