use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::sync::oneshot;

use super::{MemoryHeld, node::Node};
use crate::{AdvisoryId, LockGuard, Mode, Request, Result};

/// The answer is a guard, so that one that nobody takes releases itself.
pub(super) type Answer = Result<LockGuard<MemoryHeld>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(u64);

#[derive(Debug)]
pub(super) struct Waiter {
    place: Place,
    pub(super) node: Arc<Node>,
    pub(super) request: Request,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// Those who wait, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Queue {
    last: u64,
    waiters: VecDeque<Waiter>,
}

impl Queue {
    /// Whether one who comes now would have to stand behind somebody.
    pub(super) fn is_in_the_way_of(&self, request: &Request) -> bool {
        let mut ahead = Ahead::default();
        for waiter in &self.waiters {
            ahead.add(&waiter.request);
        }
        ahead.excludes(request)
    }

    pub(super) fn join(&mut self, node: &Arc<Node>, request: Request) -> (Place, Reply) {
        self.last += 1;
        let place = Place(self.last);
        let (answer, reply) = oneshot::channel();
        self.waiters.push_back(Waiter {
            place,
            node: Arc::clone(node),
            request,
            answer,
        });
        (place, reply)
    }

    pub(super) fn leave(&mut self, place: Place) {
        self.waiters.retain(|waiter| waiter.place != place);
    }

    /// Takes out those whom `grant` serves. It is asked in order, and not about those who stand
    /// behind somebody who goes on waiting for the same key.
    pub(super) fn serve(&mut self, mut grant: impl FnMut(Waiter) -> Option<Waiter>) {
        let mut ahead = Ahead::default();
        for waiter in std::mem::take(&mut self.waiters) {
            let unserved = if ahead.excludes(&waiter.request) {
                Some(waiter)
            } else {
                grant(waiter)
            };
            if let Some(waiter) = unserved {
                ahead.add(&waiter.request);
                self.waiters.push_back(waiter);
            }
        }
    }

    pub(super) fn take_of_node(&mut self, node: &Arc<Node>) -> Vec<Waiter> {
        let waiters = std::mem::take(&mut self.waiters);
        let (theirs, others) = waiters
            .into_iter()
            .partition::<VecDeque<_>, _>(|waiter| Arc::ptr_eq(&waiter.node, node));
        self.waiters = others;
        theirs.into()
    }

    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }
}

/// The keys that somebody further ahead waits for, in the strongest of their modes.
#[derive(Default)]
struct Ahead(HashMap<AdvisoryId, Mode>);

impl Ahead {
    fn add(&mut self, request: &Request) {
        for key in request.keys().iter() {
            let mode = self.0.entry(key.id()).or_insert(Mode::Shared);
            if request.mode() == Mode::Exclusive {
                *mode = Mode::Exclusive;
            }
        }
    }

    fn excludes(&self, request: &Request) -> bool {
        request
            .keys()
            .iter()
            .any(|key| match self.0.get(&key.id()) {
                None => false,
                Some(Mode::Exclusive) => true,
                Some(Mode::Shared) => request.mode() == Mode::Exclusive,
            })
    }
}

pub(super) type Reply = oneshot::Receiver<Answer>;
