use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use async_trait::async_trait;
use sqlock_core::{
    AdvisoryId, Error, Holder, InspectBackend, LockBackend, LockGuard, LockKey, Locks, LossCause,
    MemoryBackend, Mode, Request, Result, SharedBackend, TellsLoss, WritersFirst,
    memory::MemoryHeld,
};
use tokio::{runtime::Handle, sync::Notify};

use super::{Flaw, asking, held::FlawedHeld};

pub(super) type Inner = LockGuard<MemoryHeld>;

/// A node's own state, beside what the in-memory backend keeps.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Where ends name the key: the grants of each.
    pub(super) by_key: Mutex<HashMap<AdvisoryId, Vec<Inner>>>,
    /// Where the node enters twice: what it is in.
    pub(super) entered: Mutex<HashMap<AdvisoryId, usize>>,
    /// Where readers come along with each other: who is there.
    pub(super) readers: Mutex<HashMap<AdvisoryId, Weak<Inner>>>,
    pub(super) tokens: AtomicI64,
    /// Told when the connection breaks.
    pub(super) broken: Notify,
    shut_down: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct Flawed {
    pub(super) flaw: Flaw,
    pub(super) locks: Locks<MemoryBackend>,
    pub(super) state: Arc<State>,
    pub(super) world: Handle,
    pub(super) own: Handle,
}

impl Flawed {
    pub(super) fn new(flaw: Flaw, memory: MemoryBackend, world: Handle) -> Self {
        Self {
            flaw,
            locks: Locks::new(memory),
            state: Arc::default(),
            world,
            own: Handle::current(),
        }
    }

    pub(super) fn memory(&self) -> &MemoryBackend {
        self.locks.backend()
    }

    async fn ask(&self, request: Request) -> Result<Option<LockGuard<FlawedHeld>>> {
        if self.flaw == Flaw::BoundToItsRuntime {
            let nothing = self.own.spawn(async {}).await;
            nothing.map_err(|gone| failed(gone.into()))?;
        }
        if self.flaw == Flaw::CannotQuote && request.first_key().to_string().contains('\'') {
            return Err(failed("syntax error".into()));
        }
        let early = self.state.tokens.fetch_add(1, Ordering::SeqCst);
        let Some(inner) = asking::ask(self, &request).await? else {
            return Ok(None);
        };
        let token = match self.flaw {
            Flaw::OneTokenForAll => Some(7),
            Flaw::TokensOfTheNode | Flaw::TokensBeforeTheGrant => Some(early),
            _ => None,
        };
        Ok(Some(FlawedHeld::guard(self, &request, inner, token)))
    }
}

#[async_trait]
impl LockBackend for Flawed {
    type Held = FlawedHeld;

    fn name(&self) -> &'static str {
        "flawed"
    }

    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<FlawedHeld>>> {
        self.ask(request).await
    }

    async fn shutdown(&self) -> Result<()> {
        let again = self.state.shut_down.swap(true, Ordering::SeqCst);
        match self.flaw {
            Flaw::ShutdownKeeps => return Ok(()),
            Flaw::ShutdownAdmits => {
                self.memory().faults().lose_all(LossCause::ShutDown);
                return Ok(());
            }
            Flaw::ShutdownFailsTwice if again => return Err(failed("it is closed".into())),
            Flaw::ShutdownIsLazy => tokio::task::yield_now().await,
            _ => {}
        }
        self.locks.shutdown().await
    }
}

impl TellsLoss for Flawed {}

impl WritersFirst for Flawed {}

#[async_trait]
impl SharedBackend for Flawed {
    async fn acquire_shared(&self, request: Request) -> Result<Option<LockGuard<FlawedHeld>>> {
        self.ask(request).await
    }
}

#[async_trait]
impl InspectBackend for Flawed {
    async fn holders(&self, key: &LockKey) -> Result<Vec<Holder>> {
        match self.flaw {
            Flaw::SeesNobody => Ok(Vec::new()),
            Flaw::SeesEverybody => {
                let all = self.memory().held() + self.memory().waiting();
                Ok(vec![Holder::unknown(Mode::Exclusive); all])
            }
            _ => self.locks.inspect(key).await,
        }
    }
}

pub(super) fn failed(source: sqlock_core::BoxError) -> Error {
    Error::Backend {
        backend: "flawed",
        operation: "acquire",
        source,
    }
}
