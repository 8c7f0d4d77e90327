//! The guards of a backend, so that a shut-down can tell them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sqlock_core::{LossCause, LostSender};
use tokio::sync::Notify;

/// The loss signals of the guards that live.
#[derive(Debug, Clone, Default)]
pub(crate) struct Register(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    guards: Mutex<Guards>,
    all_ended: Notify,
}

#[derive(Debug, Default)]
struct Guards {
    last: u64,
    /// The signal of each, until it has fired.
    living: HashMap<u64, Option<LostSender>>,
    is_shut_down: bool,
}

/// A guard's place in the register; gives it up when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    register: Register,
    number: u64,
}

impl Register {
    /// `None` after a shut-down.
    pub(crate) fn enter(&self, sender: LostSender) -> Option<Place> {
        let mut guards = self.lock();
        if guards.is_shut_down {
            sender.released();
            return None;
        }
        guards.last += 1;
        let number = guards.last;
        guards.living.insert(number, Some(sender));
        Some(Place {
            register: self.clone(),
            number,
        })
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.lock().is_shut_down
    }

    /// Tells all guards, and waits until their owners have ended them.
    pub(crate) async fn shut_down(&self) {
        {
            let mut guards = self.lock();
            guards.is_shut_down = true;
            for sender in guards.living.values_mut().filter_map(Option::take) {
                sender.lose(LossCause::ShutDown);
            }
        }
        loop {
            let mut ended = std::pin::pin!(self.0.all_ended.notified());
            // before the look, or an end between the two would be missed
            ended.as_mut().enable();
            if self.lock().living.is_empty() {
                return;
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Guards> {
        self.0.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(crate) fn lose(&self, cause: LossCause) {
        if let Some(sender) = self.take_sender() {
            sender.lose(cause);
        }
    }

    pub(crate) fn released(&self) {
        if let Some(sender) = self.take_sender() {
            sender.released();
        }
    }

    fn take_sender(&self) -> Option<LostSender> {
        self.register.lock().living.get_mut(&self.number)?.take()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.released();
        let is_last = {
            let mut guards = self.register.lock();
            guards.living.remove(&self.number);
            guards.living.is_empty()
        };
        if is_last {
            self.register.0.all_ended.notify_waiters();
        }
    }
}
