use std::{thread, time::Duration};

use sqlock_core::Locks;
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
};

use crate::{LeaseHarness, World, support::on_a_thread, world::Guard};

/// A node on a runtime of its own, which stands still but while [`run`](Self::run) runs: as a process
/// that is paused, whose guards can be looked at all the same.
pub(crate) struct Apart<H: LeaseHarness> {
    runtime: Option<Runtime>,
    locks: Locks<H::Backend>,
}

impl<H: LeaseHarness> Apart<H> {
    pub(crate) async fn start(world: &World<H>) -> Self {
        let world = world.clone();
        let (runtime, locks) = on_a_thread(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            let locks = runtime.block_on(world.node());
            (runtime, locks)
        })
        .await;
        Self {
            runtime: Some(runtime),
            locks,
        }
    }

    /// Lets the node go on while `work` is done.
    pub(crate) async fn run<T: Send + 'static>(
        &mut self,
        work: impl AsyncFnOnce(Locks<H::Backend>) -> T + Send + 'static,
    ) -> T {
        let runtime = self.runtime.take().expect("no work failed");
        let locks = self.locks.clone();
        let (runtime, value) = on_a_thread(move || {
            let value = runtime.block_on(work(locks));
            (runtime, value)
        })
        .await;
        self.runtime = Some(runtime);
        value
    }

    /// The lock that all cases are about.
    pub(crate) async fn take(&mut self, ttl: Duration) -> Guard<H> {
        let lease = self.run(async move |locks| locks.lock("k").ttl(ttl).acquire().await);
        lease.await.expect("the lock is free")
    }

    /// Lets the node go on, until the returned value is dropped.
    pub(crate) fn go_on(mut self) -> GoingOn {
        let runtime = self.runtime.take().expect("no work failed");
        let (stop, stopped) = oneshot::channel();
        thread::spawn(move || runtime.block_on(stopped));
        GoingOn { _stop: stop }
    }
}

/// A node that went on after it stood still.
#[must_use]
pub(crate) struct GoingOn {
    /// Closed by the drop, and never sent on.
    _stop: oneshot::Sender<()>,
}

impl<H: LeaseHarness> Drop for Apart<H> {
    fn drop(&mut self) {
        // a runtime that is dropped within another panics
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
