use std::{
    collections::VecDeque,
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::{Error, Result};

/// Where calls of one kind learn what is to happen to them.
#[derive(Debug, Default)]
pub(super) struct Switch {
    plan: Mutex<Plan>,
    changed: Notify,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) next: VecDeque<Error>,
    pub(super) then: Then,
}

#[derive(Default)]
pub(super) enum Then {
    #[default]
    Succeed,
    Fail(Make),
    Stall,
}

pub(super) type Make = Arc<dyn Fn() -> Error + Send + Sync>;

enum Step {
    Succeed,
    Fail(Error),
    FailWith(Make),
    Stall,
}

impl Switch {
    pub(super) async fn pass(&self) -> Result<()> {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            // the plan is unlocked before a closure of the user's is called
            let step = self.plan().step();
            match step {
                Step::Succeed => return Ok(()),
                Step::Fail(error) => return Err(error),
                Step::FailWith(make) => return Err(make()),
                Step::Stall => changed.await,
            }
        }
    }

    pub(super) fn heal(&self) {
        self.change(|plan| *plan = Plan::default());
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.plan());
        self.changed.notify_waiters();
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plan {
    fn step(&mut self) -> Step {
        if let Some(error) = self.next.pop_front() {
            return Step::Fail(error);
        }
        match &self.then {
            Then::Succeed => Step::Succeed,
            Then::Fail(make) => Step::FailWith(Arc::clone(make)),
            Then::Stall => Step::Stall,
        }
    }
}

impl fmt::Debug for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Succeed => "Succeed",
            Self::Fail(_) => "Fail",
            Self::Stall => "Stall",
        })
    }
}
