use std::{
    mem::{ManuallyDrop, forget},
    sync::Arc,
};

use sqlock_core::{Deadline, Error, LockKey, Locks, MemoryBackend, Mode, Request, Result, Wait};
use tokio::sync::oneshot;

use super::{
    Flaw,
    backend::{Flawed, Inner, failed},
    held::Grip,
    keys,
};

/// Asks the in-memory backend, in the flaw's way.
pub(super) async fn ask(backend: &Flawed, request: &Request) -> Result<Option<Grip>> {
    let ask = Ask {
        locks: backend.locks.clone(),
        keys: keys::locked(backend.flaw, request),
        mode: match backend.flaw {
            Flaw::SharedIsExclusive => Mode::Exclusive,
            _ => request.mode(),
        },
        deadline: request.deadline(),
    };
    let inner = match backend.flaw {
        Flaw::Reenters => return enter_twice(backend, ask).await,
        Flaw::StarvesWriters if ask.mode == Mode::Shared => {
            return come_along(backend, ask).await;
        }
        Flaw::TryWaits if ask.deadline.is_none() => ask.wait(Wait::forever()).await?,
        Flaw::IgnoresBudget if ask.deadline.is_some() => ask.wait(Wait::forever()).await?,
        Flaw::TimesOutEarly => match ask.deadline.and_then(|deadline| deadline.remaining()) {
            Some(left) => ask.wait(Wait::at_most(left / 2)).await?,
            None => ask.plainly().await?,
        },
        Flaw::WaitersDieWithIt => tokio::select! {
            answer = ask.plainly() => answer?,
            () = backend.state.broken.notified() => return Err(failed("it broke".into())),
        },
        Flaw::LeaksOnCancel => unarmed(backend, ask).await?,
        Flaw::TakesLater if ask.deadline.is_some() => later(backend, ask).await?,
        Flaw::MissesWakeUps => match ask.deadline {
            Some(deadline) => blindly(ask, deadline).await?,
            None => ask.plainly().await?,
        },
        Flaw::HoldsWhileWaiting => return one_by_one(ask).await,
        Flaw::BudgetsEachKey => return with_a_budget_each(ask).await,
        Flaw::LeaksWhenRefused => leak_when_refused(ask).await?,
        _ => ask.plainly().await?,
    };
    Ok(inner.map(Grip::One))
}

struct Ask {
    locks: Locks<MemoryBackend>,
    keys: Vec<LockKey>,
    mode: Mode,
    deadline: Option<Deadline>,
}

impl Ask {
    async fn plainly(&self) -> Result<Option<Inner>> {
        match self.deadline {
            None => self.attempt(&self.keys).await,
            Some(deadline) => self.wait(until(deadline)).await,
        }
    }

    async fn attempt(&self, keys: &[LockKey]) -> Result<Option<Inner>> {
        let lock = self.locks.lock_all(keys);
        let lock = if self.mode == Mode::Shared {
            lock.shared()
        } else {
            lock
        };
        lock.try_acquire().await
    }

    async fn wait(&self, wait: Wait) -> Result<Option<Inner>> {
        let lock = self.locks.lock_all(&self.keys).within(wait);
        let lock = if self.mode == Mode::Shared {
            lock.shared()
        } else {
            lock
        };
        match lock.acquire().await {
            Ok(guard) => Ok(Some(guard)),
            Err(Error::Timeout { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn until(deadline: Deadline) -> Wait {
    deadline.instant().map_or(Wait::forever(), Wait::until)
}

async fn enter_twice(backend: &Flawed, ask: Ask) -> Result<Option<Grip>> {
    let id = ask.keys[0].id();
    let mine = backend.state.entered.lock().unwrap().contains_key(&id);
    let grip = if mine {
        Some(Grip::None)
    } else {
        ask.plainly().await?.map(Grip::One)
    };
    if grip.is_some() {
        *backend.state.entered.lock().unwrap().entry(id).or_default() += 1;
    }
    Ok(grip)
}

async fn come_along(backend: &Flawed, ask: Ask) -> Result<Option<Grip>> {
    let id = ask.keys[0].id();
    let there = backend
        .state
        .readers
        .lock()
        .unwrap()
        .get(&id)
        .and_then(std::sync::Weak::upgrade);
    if let Some(reader) = there {
        return Ok(Some(Grip::Along(reader)));
    }
    let reader = ask.plainly().await?.map(Arc::new);
    if let Some(reader) = &reader {
        let weak = Arc::downgrade(reader);
        backend.state.readers.lock().unwrap().insert(id, weak);
    }
    Ok(reader.map(Grip::Along))
}

async fn unarmed(backend: &Flawed, ask: Ask) -> Result<Option<Inner>> {
    let (sender, reply) = oneshot::channel();
    backend.world.spawn(async move {
        let answer = ask.plainly().await;
        let _ = sender.send(answer.map(|guard| guard.map(ManuallyDrop::new)));
    });
    // however fast the task is, there is a moment at which the caller can be dropped
    tokio::task::yield_now().await;
    let answer = reply.await.expect("the task answers")?;
    Ok(answer.map(ManuallyDrop::into_inner))
}

async fn later(backend: &Flawed, ask: Ask) -> Result<Option<Inner>> {
    let Some(deadline) = ask.deadline else {
        return ask.plainly().await;
    };
    let (sender, reply) = oneshot::channel();
    backend.world.spawn(async move {
        let answer = ask.wait(Wait::forever()).await;
        if let Err(late) = sender.send(answer) {
            forget(late);
        }
    });
    match deadline.bound(reply).await {
        None => Ok(None),
        Some(answer) => answer.expect("the task answers"),
    }
}

async fn blindly(ask: Ask, deadline: Deadline) -> Result<Option<Inner>> {
    if let Some(guard) = ask.attempt(&ask.keys).await? {
        return Ok(Some(guard));
    }
    deadline.bound(std::future::pending::<()>()).await;
    ask.attempt(&ask.keys).await
}

async fn one_by_one(ask: Ask) -> Result<Option<Grip>> {
    let mut guards = Vec::new();
    for key in ask.keys.clone() {
        let one = Ask {
            locks: ask.locks.clone(),
            keys: vec![key],
            ..ask
        };
        match one.plainly().await? {
            Some(guard) => guards.push(guard),
            None => return Ok(None),
        }
    }
    Ok(Some(Grip::Many(guards)))
}

async fn with_a_budget_each(ask: Ask) -> Result<Option<Grip>> {
    let budget = ask.deadline.and_then(|deadline| deadline.remaining());
    let mut guards = Vec::new();
    for key in ask.keys.clone() {
        let budget = budget.map_or(Wait::forever(), Wait::at_most);
        let deadline = ask.deadline.map(|_| budget.start());
        let one = Ask {
            locks: ask.locks.clone(),
            keys: vec![key],
            deadline,
            ..ask
        };
        match one.plainly().await? {
            Some(guard) => guards.push(guard),
            None => return Ok(None),
        }
    }
    Ok(Some(Grip::Many(guards)))
}

async fn leak_when_refused(ask: Ask) -> Result<Option<Inner>> {
    let answer = ask.attempt(&ask.keys).await?;
    if answer.is_some() {
        return Ok(answer);
    }
    if ask.keys.len() == 1 {
        return ask.plainly().await;
    }
    if let Some(guard) = ask.attempt(&ask.keys[..1]).await? {
        forget(guard);
    }
    Ok(None)
}
