use anyhow::Result;

use super::local::Local;
use super::{Kind, PgBouncer};
use crate::server::blocking;

/// What is done to its process. Each panics for one in a container.
impl PgBouncer {
    /// Ends it at once, as if it was killed: all clients and server connections are cut off.
    pub async fn stop(&self) {
        self.act(Local::stop).await;
    }

    /// Starts it after [`stop`](Self::stop), on its port.
    pub async fn start_again(&self) {
        self.act(Local::start_again).await;
    }

    /// Ends it and starts it again.
    pub async fn restart(&self) {
        self.stop().await;
        self.start_again().await;
    }

    /// Its pid, for [`signal`](crate::signal).
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.local().pid().expect("pgbouncer runs")
    }

    fn local(&self) -> &Local {
        match &*self.kind {
            Kind::Local(local) => local,
            Kind::Container(_) | Kind::Odyssey(_) => panic!(
                "only a pgbouncer of a local binary can be stopped; \
                 apt-get install pgbouncer brings it"
            ),
        }
    }

    async fn act(&self, action: impl FnOnce(&Local) -> Result<()> + Send + 'static) {
        // Refused here rather than on the thread, so that it is the test that panics.
        self.local();
        let pooler = self.clone();
        blocking(move || action(pooler.local())).await;
    }
}
