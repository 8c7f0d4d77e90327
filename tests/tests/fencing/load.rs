//! Everybody at once: sessions, transactions and leases, on few keys.

use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rand::Rng;
use sqlock::{
    LockBackend, Locks, TtlBackend,
    session::{Fencing, Preflight, SessionOptions},
    ttl::{LeaseOptions, TtlOptions},
    xact::XactOptions,
};
use sqlx::postgres::PgPoolOptions;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::record::Record;

const KEYS: u32 = 6;
const GRACE: Duration = Duration::from_millis(500);

/// The tokens that were given by one world, whatever servers it has had.
#[derive(Debug, Default, Clone)]
pub(crate) struct Records {
    pub(crate) advisory: Arc<Record>,
    pub(crate) leases: Arc<Record>,
}

/// Workers who go on until they are told to stop, or the server is gone.
pub(crate) struct Load {
    tasks: JoinSet<()>,
    stop: Arc<AtomicBool>,
}

impl Load {
    /// New processes, as it were, on the database of this URL.
    pub(crate) async fn start(url: &str, records: &Records) -> Self {
        let mut load = Self {
            tasks: JoinSet::new(),
            stop: Arc::default(),
        };
        for _ in 0..2 {
            let options = SessionOptions::new()
                .preflight(Preflight::Skip)
                .fencing(Fencing::new());
            let session = Locks::new(options.connect(url).await.expect("a session"));
            let pool = PgPoolOptions::new()
                .max_connections(3)
                .acquire_timeout(Duration::from_secs(10))
                .connect_lazy(url)
                .expect("a pool");
            let options = XactOptions::new()
                .preflight(Preflight::Skip)
                .fencing(Fencing::new());
            let xact = Locks::new(options.with_pool(pool));
            let leases = leases(url);
            for _ in 0..3 {
                load.work(&session, &records.advisory);
                load.work(&xact, &records.advisory);
                load.work(&leases, &records.leases);
            }
        }
        load
    }

    fn work<B: LockBackend>(&mut self, locks: &Locks<B>, record: &Arc<Record>) {
        let (locks, record) = (locks.clone(), Arc::clone(record));
        let stop = Arc::clone(&self.stop);
        self.tasks.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let key = format!("key {}", rand::rng().random_range(0..KEYS));
                let Ok(granted) = locks.try_acquire(key).await else {
                    return;
                };
                let Some(guard) = granted else {
                    sleep(Duration::from_millis(1)).await;
                    continue;
                };
                record.granted(&guard);
                // half of them are in the midst of it when the server dies
                if rand::rng().random_bool(0.5) {
                    sleep(Duration::from_millis(5)).await;
                }
                if rand::rng().random_bool(0.3) {
                    drop(guard);
                } else if guard.release().await.is_err() {
                    return;
                }
            }
        });
    }

    /// From now on nobody begins anything.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Nobody records a grant after this. Those who try to reach a dead server are not waited for.
    pub(crate) async fn end(mut self) {
        self.stop();
        let all = async { while self.next().await {} };
        timeout(GRACE, all).await.ok();
        self.tasks.abort_all();
        while self.next().await {}
    }

    /// The end of the next worker, or its panic.
    async fn next(&mut self) -> bool {
        match self.tasks.join_next().await {
            Some(Err(error)) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            ended => ended.is_some(),
        }
    }
}

pub(crate) fn leases(url: &str) -> Locks<TtlBackend> {
    let leases = LeaseOptions::new().ttl(Duration::from_secs(1));
    let backend = TtlOptions::new().leases(leases).connect(url);
    Locks::new(backend.expect("options"))
}
