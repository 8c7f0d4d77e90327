//! Random schedules of what can happen to leases, many at a time.

use std::{
    env,
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
};

use sqlock::{LockGuard, ttl::TtlHeld};
use tokio::{sync::Semaphore, task::JoinSet};

/// How many schedules are tried: `SQLOCK_SCHEDULES`, or enough for every day.
#[must_use]
pub fn schedules_or(every_day: usize) -> usize {
    let wanted = env::var("SQLOCK_SCHEDULES").ok();
    let wanted = wanted.map(|count| count.parse().expect("SQLOCK_SCHEDULES is a number"));
    wanted.unwrap_or(every_day)
}

/// Those who were granted one key.
#[derive(Debug, Default)]
pub struct Believers {
    leases: Mutex<Vec<Arc<LockGuard<TtlHeld>>>>,
    last_token: AtomicI64,
}

impl Believers {
    /// At the moment of a grant nobody else may believe in the lock, and the token is the highest.
    pub fn granted(&self, lease: LockGuard<TtlHeld>, what: &str) -> Arc<LockGuard<TtlHeld>> {
        let lease = Arc::new(lease);
        let token = lease.token().expect("a token").get();
        let mut leases = self.leases.lock().expect("no panic");
        let two_believe = leases
            .iter()
            .any(|other| other.is_valid() && lease.is_valid());
        assert!(!two_believe, "{what}: two believe");
        let last = self.last_token.swap(token, Ordering::SeqCst);
        assert!(last < token, "{what}: token {token} after {last}");
        leases.push(Arc::clone(&lease));
        lease
    }

    /// What is given back is believed in by nobody.
    pub fn forget(&self, lease: Arc<LockGuard<TtlHeld>>) -> Option<LockGuard<TtlHeld>> {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        leases.retain(|other| !Arc::ptr_eq(other, &lease));
        Arc::into_inner(lease)
    }
}

/// What came of all schedules.
#[derive(Debug, Default)]
pub struct Tally {
    grants: AtomicUsize,
    losses: AtomicUsize,
}

impl Tally {
    /// A lease was granted.
    pub fn grant(&self) {
        self.grants.fetch_add(1, Ordering::Relaxed);
    }

    /// A holder was told that its lease is lost.
    pub fn loss(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// How many leases were granted, and how many of them were lost.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let count = |what: &AtomicUsize| what.load(Ordering::Relaxed);
        (count(&self.grants), count(&self.losses))
    }
}

/// Runs the schedule of each seed, `at_once` of them at a time. The first that panics is told.
pub async fn run_schedules<F>(seeds: Range<u64>, at_once: usize, schedule: impl Fn(u64) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(at_once));
    let mut tasks = JoinSet::new();
    for seed in seeds {
        let room = Arc::clone(&room).acquire_owned().await.expect("it is open");
        let schedule = schedule(seed);
        tasks.spawn(async move {
            schedule.await;
            drop(room);
        });
    }
    tasks.join_all().await;
}
