use std::time::Duration;

use sqlock::{LockGuard, ttl::TtlHeld};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};

/// A lease, and what its holder believes about it: for processes that tests stop and kill.
#[derive(Debug)]
pub struct Belief {
    lease: LockGuard<TtlHeld>,
    work: Option<JoinHandle<()>>,
    end: &'static str,
}

const PATIENCE: Duration = Duration::from_secs(5);

impl Belief {
    /// Starts work that must not go on without the lease.
    #[must_use]
    pub fn of(lease: LockGuard<TtlHeld>) -> Self {
        let work = protected_work(&lease);
        Self {
            lease,
            work: Some(work),
            end: "running",
        }
    }

    /// The lease's token.
    #[must_use]
    pub fn token(&self) -> i64 {
        self.lease.token().expect("a lease has a token").get()
    }

    /// In a line. Work that was to stop may do so on another thread, which is waited for.
    pub async fn told(&mut self) -> String {
        let (valid, lost) = (self.lease.is_valid(), self.lease.check().is_err());
        if lost
            && let Some(work) = &mut self.work
            && let Ok(end) = timeout(PATIENCE, work).await
        {
            self.end = end.map_or("broken", |()| "stopped");
            self.work = None;
        }
        format!("valid={valid} lost={lost} protected={}", self.end)
    }
}

/// Work that would notice if it were polled after the lease is over.
fn protected_work(lease: &LockGuard<TtlHeld>) -> JoinHandle<()> {
    let lost = lease.lost();
    let (ticks, mut ticked) = mpsc::unbounded_channel();
    let still = lease.lost();
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_millis(5)).await;
            if ticks.send(()).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        let work = async {
            while ticked.recv().await.is_some() {
                assert!(still.check().is_ok(), "work goes on without its lease");
            }
        };
        lost.protect(work).await.ok();
    })
}
