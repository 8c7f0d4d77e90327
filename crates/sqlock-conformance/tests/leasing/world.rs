use std::{marker::PhantomData, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlock_conformance::{ClockHarness, Harness, LeaseHarness, Step};
use sqlock_core::Locks;

use super::{
    Flaw,
    node::LeaseNode,
    table::{Table, micros},
};

/// A type a flaw, since the suite starts worlds by their type.
pub(crate) trait Has: Send + Sync + 'static {
    const FLAW: Flaw;
}

pub(crate) struct LeaseWorld<F> {
    table: Arc<Table>,
    flaw: PhantomData<F>,
}

#[async_trait]
impl<F: Has> Harness for LeaseWorld<F> {
    type Backend = LeaseNode;

    // a conviction is often something that does not happen
    const TIME_LIMIT: Duration = match F::FLAW {
        Flaw::None => Duration::from_secs(60),
        _ => Duration::from_secs(5),
    };
    const PATIENCE: Duration = match F::FLAW {
        Flaw::None => Duration::from_secs(10),
        _ => Duration::from_millis(1500),
    };

    async fn start() -> Self {
        Self {
            table: Arc::new(Table::new(F::FLAW)),
            flaw: PhantomData,
        }
    }

    async fn node(&self) -> Locks<LeaseNode> {
        Locks::new(LeaseNode {
            table: Arc::clone(&self.table),
            ttl: Self::TTL * 4,
        })
    }

    async fn held(&self) -> usize {
        self.table.held()
    }
}

#[async_trait]
impl<F: Has> LeaseHarness for LeaseWorld<F> {
    const TTL: Duration = match F::FLAW {
        Flaw::None => Duration::from_millis(500),
        _ => Duration::from_millis(200),
    };

    async fn block(&self) -> Box<dyn Send> {
        Box::new(Arc::clone(&self.table.gate).lock_owned().await)
    }
}

#[async_trait]
impl<F: Has> ClockHarness for LeaseWorld<F> {
    async fn step(&self, step: Step) {
        self.table.step(match step {
            Step::Ahead(by) => micros(by),
            Step::Back(by) => -micros(by),
        });
    }
}
