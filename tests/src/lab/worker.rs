use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use rand::Rng as _;
use serde::{Deserialize, Serialize};
use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgPool, PgPoolOptions},
};
use tokio::{io::AsyncReadExt as _, sync::watch, task::JoinSet};

use super::{Backend, Flaw, Setup, Way, belongings::Belongings, journal::Journal, workers};

/// Tasks of a worker, each for itself.
const TASKS: usize = 3;
/// Within which all that worked for the locks has ended, once they are shut down.
const LINGER: Duration = Duration::from_secs(3);

/// What a worker process is told, as JSON in its only argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Worker {
    pub(super) process: u32,
    pub(super) backend: String,
    pub(super) pooled: bool,
    pub(super) flaw: Option<String>,
    /// The database with the locks, by way of the proxy.
    pub(super) locks: String,
    /// The database with what the locks are for.
    pub(super) resource: String,
    pub(super) journal: PathBuf,
}

/// What all tasks of a worker have in common.
#[derive(Debug)]
pub(super) struct Workplace {
    pub(super) setup: Setup,
    pub(super) journal: Journal,
    pub(super) resource: PgPool,
    pub(super) stop: watch::Receiver<bool>,
    grants: AtomicU32,
}

impl Worker {
    /// Contends until its standard input ends, and then shuts down.
    ///
    /// # Errors
    ///
    /// What it is told makes no sense, or the resource cannot be reached.
    pub async fn run(argument: &str) -> Result<()> {
        let worker: Self = serde_json::from_str(argument).context("the argument is no worker")?;
        let before = Belongings::count()?;
        let (stopping, stop) = watch::channel(false);
        let workplace = Arc::new(Workplace {
            setup: worker.setup()?,
            journal: Journal::create(&worker.journal, worker.process)?,
            resource: PgPoolOptions::new()
                .max_connections(u32::try_from(TASKS)?)
                .connect(&worker.resource)
                .await?,
            stop,
            grants: AtomicU32::new(0),
        });
        tokio::spawn(async move {
            let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
            stopping.send_replace(true);
        });
        match workplace.setup.backend {
            Backend::Session => workers::with_session(&workplace, worker.options()?).await?,
            Backend::Ttl => workers::with_ttl(&workplace, worker.options()?).await?,
            Backend::Xact => workers::with_xact(&workplace, worker.options()?).await?,
        }
        workplace.resource.close().await;
        let (tasks, sockets) = before.more_after(LINGER).await?;
        workplace
            .journal
            .write(super::Event::Left { tasks, sockets });
        workplace.journal.write(super::Event::Stopped);
        Ok(())
    }

    fn setup(&self) -> Result<Setup> {
        Ok(Setup {
            backend: self.backend.parse()?,
            way: if self.pooled {
                Way::Pooled
            } else {
                Way::Direct
            },
            flaw: self.flaw.as_deref().map(str::parse::<Flaw>).transpose()?,
        })
    }

    fn options(&self) -> Result<PgConnectOptions> {
        let options: PgConnectOptions = self.locks.parse()?;
        let options = options.disable_statement_logging();
        Ok(if self.pooled {
            // which a stock pooler refuses
            options.extra_float_digits(None)
        } else {
            options
        })
    }
}

impl Workplace {
    pub(super) fn flaw(&self, flaw: Flaw) -> bool {
        self.setup.flaw == Some(flaw)
    }

    pub(super) fn new_grant(&self) -> u32 {
        self.grants.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn is_over(&self) -> bool {
        *self.stop.borrow()
    }

    /// Sleeps, but for less where all is over.
    pub(super) async fn rest(&self, time: Duration) {
        let mut stop = self.stop.clone();
        let _ = tokio::time::timeout(time, stop.wait_for(|stop| *stop)).await;
    }

    /// Runs the tasks until all are done.
    pub(super) async fn staff<F, Fut>(self: &Arc<Self>, task: F) -> Result<()>
    where
        F: Fn(Arc<Self>) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            tasks.spawn(task(Arc::clone(self)));
        }
        while let Some(done) = tasks.join_next().await {
            done?;
        }
        Ok(())
    }
}

/// A length of time between the two, in milliseconds.
pub(super) fn some(range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rand::rng().random_range(range))
}

/// True once in so many.
pub(super) fn once_in(count: u32) -> bool {
    rand::rng().random_ratio(1, count)
}
