use async_trait::async_trait;
use sqlock_conformance::{Harness, LossHarness};
use sqlock_core::{Locks, LossCause, MemoryBackend};

pub(crate) struct Memory(MemoryBackend);

#[async_trait]
impl Harness for Memory {
    type Backend = MemoryBackend;

    async fn start() -> Self {
        Self(MemoryBackend::new())
    }

    async fn node(&self) -> Locks<MemoryBackend> {
        Locks::new(self.0.another_node())
    }

    async fn held(&self) -> usize {
        self.0.held()
    }

    /// Those who wait are as much of a leak as those who hold.
    async fn leftovers(&self) -> usize {
        self.0.held() + self.0.waiting()
    }
}

#[async_trait]
impl LossHarness for Memory {
    async fn break_holder(&self, node: &Locks<MemoryBackend>) {
        node.backend()
            .faults()
            .lose_all(LossCause::ConnectionClosed);
    }
}
