use std::{marker::PhantomData, time::Duration};

use async_trait::async_trait;
use sqlock_conformance::{Harness, LossHarness};
use sqlock_core::{Locks, LossCause, MemoryBackend};
use tokio::runtime::Handle;

use super::{Flaw, backend::Flawed};

/// A type a flaw, since the suite starts worlds by their type.
pub(crate) trait Has: Send + Sync + 'static {
    const FLAW: Flaw;
}

pub(crate) struct FlawedWorld<F> {
    memory: MemoryBackend,
    // nodes that do not contend are in tables of their own
    tables: std::sync::Mutex<Vec<MemoryBackend>>,
    runtime: Handle,
    flaw: PhantomData<F>,
}

#[async_trait]
impl<F: Has> Harness for FlawedWorld<F> {
    type Backend = Flawed;

    // a conviction is often something that does not happen
    const TIME_LIMIT: Duration = match F::FLAW {
        Flaw::None => Duration::from_secs(60),
        _ => Duration::from_secs(4),
    };
    const PATIENCE: Duration = match F::FLAW {
        Flaw::None => Duration::from_secs(10),
        _ => Duration::from_millis(500),
    };

    async fn start() -> Self {
        Self {
            memory: MemoryBackend::new(),
            tables: std::sync::Mutex::default(),
            runtime: Handle::current(),
            flaw: PhantomData,
        }
    }

    async fn node(&self) -> Locks<Flawed> {
        let memory = if F::FLAW == Flaw::NodesApart {
            let apart = MemoryBackend::new();
            self.tables.lock().unwrap().push(apart.clone());
            apart
        } else {
            self.memory.another_node()
        };
        Locks::new(Flawed::new(F::FLAW, memory, self.runtime.clone()))
    }

    async fn held(&self) -> usize {
        let apart = self.tables.lock().unwrap();
        self.memory.held() + apart.iter().map(MemoryBackend::held).sum::<usize>()
    }
}

#[async_trait]
impl<F: Has> LossHarness for FlawedWorld<F> {
    const NOTICE: Duration = match F::FLAW {
        Flaw::None => Duration::from_secs(5),
        _ => Duration::from_millis(500),
    };

    async fn break_holder(&self, node: &Locks<Flawed>) {
        let cause = LossCause::ConnectionClosed;
        let faults = node.backend().memory().faults();
        if F::FLAW == Flaw::LosesOneOnly {
            faults.lose("a", cause).unwrap();
            return;
        }
        faults.lose_all(cause);
        node.backend().state.broken.notify_waiters();
        if F::FLAW == Flaw::BreaksForGood {
            faults.acquires().fail();
        }
    }
}
