use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::{
    BACKEND, MemoryHeld,
    grants::{Grant, Grants, Number},
    node::Node,
    queue::{Answer, Place, Queue, Reply},
};
use crate::{AdvisoryId, Deadline, Error, Holder, LockGuard, LossCause, Request, Result};

/// The locks of all nodes. Locked for a moment at a time, never across an await.
#[derive(Debug, Default)]
pub(super) struct Table(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    grants: Grants,
    queue: Queue,
}

/// What became of a request.
pub(super) enum Offer {
    Granted(LockGuard<MemoryHeld>),
    Refused,
    Queued(Ticket),
}

/// A place in the queue, left when this is dropped.
pub(super) struct Ticket {
    table: Arc<Table>,
    place: Place,
    reply: Reply,
}

/// Grants are made with the table locked. Guards are made and sent after that, since a guard that
/// nobody takes is dropped there and then, and its drop locks the table.
type Served = Vec<(oneshot::Sender<Answer>, Grant)>;

impl Table {
    pub(super) fn offer(self: &Arc<Self>, node: &Arc<Node>, request: Request) -> Result<Offer> {
        let mut state = self.lock();
        if node.is_closed() {
            return Err(shut_down());
        }
        if state.grants.admit(&request) && !state.queue.is_in_the_way_of(&request) {
            let grant = state.grants.add(node, &request);
            drop(state);
            return Ok(Offer::Granted(MemoryHeld::guard(self, grant)));
        }
        if request.deadline().is_none() {
            return Ok(Offer::Refused);
        }
        let (place, reply) = state.queue.join(node, request);
        Ok(Offer::Queued(Ticket {
            table: Arc::clone(self),
            place,
            reply,
        }))
    }

    /// Whether this call ended the grant, or it was over before.
    pub(super) fn end(self: &Arc<Self>, number: Number) -> bool {
        let mut state = self.lock();
        let Some(signal) = state.grants.end(number) else {
            return false;
        };
        let served = state.serve();
        drop(state);
        signal.released();
        self.deliver(served);
        true
    }

    /// Takes grants away from their holders, and gives how many there were. The holders are told
    /// before another can have their locks, and with the table unlocked, as subscribers run then.
    pub(super) fn lose(
        self: &Arc<Self>,
        which: impl FnOnce(&Grants) -> Vec<Number>,
        cause: &LossCause,
    ) -> usize {
        let mut state = self.lock();
        let numbers = which(&state.grants);
        let condemned: Vec<_> = numbers
            .into_iter()
            .filter_map(|number| Some((number, state.grants.condemn(number)?)))
            .collect();
        drop(state);
        let mut lost = Vec::with_capacity(condemned.len());
        for (number, signal) in condemned {
            signal.lose(cause.clone());
            lost.push(number);
        }
        let mut state = self.lock();
        for number in lost.iter().copied() {
            state.grants.remove(number);
        }
        let served = state.serve();
        drop(state);
        self.deliver(served);
        lost.len()
    }

    pub(super) fn shut_down(self: &Arc<Self>, node: &Arc<Node>) {
        let mut state = self.lock();
        node.close();
        let turned_away = state.queue.take_of_node(node);
        drop(state);
        for waiter in turned_away {
            // refused where the waiter has just left, which is as well
            let _ = waiter.answer.send(Err(shut_down()));
        }
        self.lose(|grants| grants.of_node(node), &LossCause::ShutDown);
    }

    pub(super) fn holders(&self, id: AdvisoryId) -> Vec<Holder> {
        self.lock().grants.holders(id)
    }

    pub(super) fn held(&self) -> usize {
        self.lock().grants.count()
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().queue.len()
    }

    fn deliver(self: &Arc<Self>, served: Served) {
        let armed: Vec<_> = served
            .into_iter()
            .map(|(answer, grant)| (answer, MemoryHeld::guard(self, grant)))
            .collect();
        for (answer, guard) in armed {
            // a guard that comes back is dropped, and that releases the lock
            let _ = answer.send(Ok(guard));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn serve(&mut self) -> Served {
        let mut served = Served::new();
        let grants = &mut self.grants;
        self.queue.serve(|waiter| {
            if !grants.admit(&waiter.request) {
                return Some(waiter);
            }
            let grant = grants.add(&waiter.node, &waiter.request);
            served.push((waiter.answer, grant));
            None
        });
        served
    }
}

impl Offer {
    pub(super) async fn answer(
        self,
        deadline: Option<Deadline>,
    ) -> Result<Option<LockGuard<MemoryHeld>>> {
        match (self, deadline) {
            (Self::Granted(guard), _) => Ok(Some(guard)),
            (Self::Queued(ticket), Some(deadline)) => ticket.wait(deadline).await,
            (Self::Queued(_) | Self::Refused, _) => Ok(None),
        }
    }
}

impl Ticket {
    async fn wait(mut self, deadline: Deadline) -> Result<Option<LockGuard<MemoryHeld>>> {
        if let Some(answer) = deadline.bound(&mut self.reply).await {
            return answer.unwrap_or_else(|_| Err(shut_down())).map(Some);
        }
        // a grant may have crossed with the deadline: it is there, so it is taken
        self.reply.close();
        self.reply.try_recv().ok().transpose()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.table.lock();
        state.queue.leave(self.place);
        // those behind a writer that gives up may go on
        let served = state.serve();
        drop(state);
        self.table.deliver(served);
    }
}

fn shut_down() -> Error {
    Error::ShutDown { backend: BACKEND }
}
