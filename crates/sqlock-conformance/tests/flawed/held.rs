use std::{
    mem::{ManuallyDrop, forget},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use sqlock_core::{
    Error, FencingToken, Held, LockGuard, LockKey, LossCause, Lost, LostSender, Request, Result,
};
use tokio::runtime::Handle;

use super::{
    Flaw,
    backend::{Flawed, Inner, State},
};

/// What really keeps the lock.
pub(super) enum Grip {
    None,
    One(Inner),
    Many(Vec<Inner>),
    Along(Arc<Inner>),
}

pub(crate) struct FlawedHeld {
    flaw: Flaw,
    state: Arc<State>,
    keys: Arc<[LockKey]>,
    token: Option<i64>,
    signal: (Mutex<Option<LostSender>>, Lost),
    lost: Lost,
    inner_token: Option<FencingToken>,
    grip: Option<Grip>,
}

impl FlawedHeld {
    pub(super) fn guard(
        backend: &Flawed,
        request: &Request,
        grip: Grip,
        token: Option<i64>,
    ) -> LockGuard<Self> {
        let (sender, signal) = LostSender::new("flawed", request);
        let first = match &grip {
            Grip::None => None,
            Grip::One(guard) => Some(guard),
            Grip::Many(guards) => guards.first(),
            Grip::Along(guard) => Some(&**guard),
        };
        let mut held = Self {
            flaw: backend.flaw,
            state: Arc::clone(&backend.state),
            keys: Arc::clone(request.keys()),
            token,
            signal: (Mutex::new(Some(sender)), signal),
            lost: first.map_or(Lost::never(), LockGuard::lost),
            inner_token: first.and_then(LockGuard::token),
            grip: Some(grip),
        };
        if held.flaw == Flaw::FreesByKey
            && let Some(Grip::One(guard)) = held.grip.take()
        {
            let mut by_key = held.state.by_key.lock().unwrap();
            by_key.entry(held.keys[0].id()).or_default().push(guard);
        }
        LockGuard::arm(held)
    }

    /// What is to be let go of.
    fn loosen(&mut self) -> Option<Grip> {
        let id = self.keys[0].id();
        match self.flaw {
            Flaw::FreesByKey => {
                let mut by_key = self.state.by_key.lock().unwrap();
                by_key.get_mut(&id).and_then(Vec::pop).map(Grip::One)
            }
            Flaw::Reenters => {
                let grip = self.grip.take()?;
                let mut entered = self.state.entered.lock().unwrap();
                let times = entered.entry(id).or_default();
                *times -= 1;
                if *times == 0 {
                    entered.remove(&id);
                }
                Some(grip)
            }
            _ => self.grip.take(),
        }
    }

    fn tell_after_the_end(&self) {
        let sender = self.signal.0.lock().unwrap().take();
        match (self.flaw, sender) {
            (Flaw::TellsAfterTheEnd, Some(sender)) => sender.lose(LossCause::ConnectionClosed),
            (_, Some(sender)) => sender.released(),
            (_, None) => {}
        }
    }
}

#[async_trait]
impl Held for FlawedHeld {
    fn backend(&self) -> &'static str {
        "flawed"
    }

    fn keys(&self) -> &[LockKey] {
        &self.keys
    }

    fn token(&self) -> Option<FencingToken> {
        self.token.map(FencingToken::new).or(self.inner_token)
    }

    fn lost(&self) -> Lost {
        match self.flaw {
            Flaw::NeverTells => Lost::never(),
            Flaw::ForgetsLosses if self.lost.cause().is_some() => Lost::never(),
            Flaw::TellsAfterTheEnd if self.lost.cause().is_none() => self.signal.1.clone(),
            _ => self.lost.clone(),
        }
    }

    async fn release(&mut self) -> Result<()> {
        let Some(grip) = self.loosen() else {
            return self.lost().check();
        };
        match self.flaw {
            Flaw::ReleasesLate => {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    drop(grip);
                });
                return Ok(());
            }
            Flaw::LeaksOnCancelledRelease => {
                let grip = ManuallyDrop::new(grip);
                tokio::task::yield_now().await;
                drop(ManuallyDrop::into_inner(grip));
                return Ok(());
            }
            Flaw::FreesByKey => {
                drop(grip);
                tokio::task::yield_now().await;
                return Ok(());
            }
            _ => {}
        }
        let released = grip.release().await;
        self.tell_after_the_end();
        match released {
            Err(Error::Lost { .. })
                if matches!(self.flaw, Flaw::SwallowsLosses | Flaw::NeverTells) =>
            {
                Ok(())
            }
            released => released,
        }
    }

    fn abandon(&mut self) {
        let Some(grip) = self.loosen() else { return };
        match self.flaw {
            Flaw::LeaksOnDrop => forget(grip),
            Flaw::LeaksInPanic if thread::panicking() => forget(grip),
            Flaw::DropSpawns => {
                let grip = ManuallyDrop::new(grip);
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(async move { drop(ManuallyDrop::into_inner(grip)) });
                }
            }
            _ => drop(grip),
        }
        self.tell_after_the_end();
    }
}

impl Grip {
    async fn release(self) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::One(guard) => guard.release().await,
            Self::Many(guards) => {
                for guard in guards {
                    guard.release().await?;
                }
                Ok(())
            }
            Self::Along(guard) => match Arc::try_unwrap(guard) {
                Ok(guard) => guard.release().await,
                Err(_others) => Ok(()),
            },
        }
    }
}
