mod campaign;
mod seat;
mod standing;
mod term;

use std::{
    fmt,
    future::{Future, pending},
    ops::ControlFlow,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use tokio::sync::watch;

use self::{campaign::Campaign, seat::StepDown};
pub use self::{
    standing::{ElectionWatch, Health, Standing},
    term::Term,
};
use crate::{
    Error, Holder, InspectBackend, LeaseBackend, Leased, Lock, LockBackend, LockKey, Result,
    TellsLoss, Wait,
};

/// One of many nodes leads, and the next one does when it does no more. Made by
/// [`Locks::election`](crate::Locks::election).
///
/// ```
/// # use sqlock_core::{Locks, MemoryBackend, Term};
/// # use std::ops::ControlFlow;
/// # async fn schedule_jobs(_: Term) -> u32 { 7 }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sqlock_core::Result<()> {
/// # let locks = Locks::new(MemoryBackend::new());
/// let election = locks.election("scheduler")?;
/// let watch = election.watch(); // for a readiness probe: watch.health().is_ready()
///
/// let jobs = election
///     .run(|term| async move {
///         // runs while this node leads, and is dropped at its current await where it does no more
///         let jobs = schedule_jobs(term).await;
///         ControlFlow::Break(jobs) // stands no more; Continue(()) lets others have a turn
///     })
///     .await?;
/// assert_eq!(jobs, 7);
/// assert!(!watch.is_leading());
/// # Ok(()) }
/// ```
///
/// The leader is who holds the lock of that name, so that at no time two lead as long as the
/// backend keeps its promise. Work that outlives an `await` in the leader's body, and resources
/// outside, need the term's [token](Term::token): a process can be paused between its look at the
/// term and its next step.
#[must_use = "nobody stands for election until it is run"]
pub struct Election<B: LockBackend> {
    lock: Lock<B>,
    key: LockKey,
    retry: Duration,
    step_down: Option<StepDown<B::Held>>,
    holders: Option<AskHolders<B>>,
    standing: watch::Sender<Standing>,
}

type Holders<'a> = Pin<Box<dyn Future<Output = Result<Vec<Holder>>> + Send + 'a>>;
/// Kept as a function, so that only [`Election::naming_the_leader`] needs the bound.
type AskHolders<B> = for<'a> fn(&'a B, &'a LockKey) -> Holders<'a>;

const LONGEST_RETRY: Duration = Duration::from_secs(86_400);

impl<B: TellsLoss> Election<B> {
    pub(crate) fn new(lock: Lock<B>) -> Result<Self> {
        let key = lock.keys.as_ref().map_err(Clone::clone)?[0].clone();
        Ok(Self {
            // a node stands until it leads
            lock: lock.within(Wait::forever()),
            key,
            retry: Duration::from_secs(2),
            step_down: None,
            holders: None,
            standing: watch::Sender::new(Standing::Stopped),
        })
    }

    /// What the leader is called, for backends that show it to others.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.lock = self.lock.label(label);
        self
    }

    /// The longest pause before a node stands again: after an error, and after a term of its own,
    /// so that others get a turn. Also the time between two looks at who leads. The default is 2 s,
    /// and the pauses are jittered.
    pub fn retry(mut self, pause: Duration) -> Self {
        self.retry = pause;
        self
    }

    /// For how long the lease of a leader is valid unless it is renewed, which happens by itself:
    /// the time after which another leads where the leader dies. The default is the backend's.
    pub fn ttl(mut self, ttl: Duration) -> Self
    where
        B: LeaseBackend,
    {
        self.lock = self.lock.ttl(ttl);
        self
    }

    /// How long before the end of a lease that could not be renewed the leader steps down, so that
    /// its body is over in time. At most half of the [`ttl`](Self::ttl), which has to be set too.
    ///
    /// Without it the leader steps down at the holder's own deadline, which is before the lease can
    /// be taken by another, by a margin that the backend documents.
    pub fn step_down_before(mut self, duration: Duration) -> Self
    where
        B: LeaseBackend,
        B::Held: Leased,
    {
        self.step_down = Some(StepDown {
            before: duration,
            remaining: |held| held.remaining(),
        });
        self
    }

    /// Tells those who follow who leads, by a look now and then.
    pub fn naming_the_leader(mut self) -> Self
    where
        B: InspectBackend,
    {
        self.holders = Some(|backend, key| backend.holders(key));
        self
    }

    /// What is led.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// Tells where this node stands, before, while and after it [runs](Self::run).
    #[must_use]
    pub fn watch(&self) -> ElectionWatch {
        ElectionWatch(self.standing.subscribe())
    }

    /// Stands for election, again and again, and runs `body` in each term.
    ///
    /// The body is dropped at its current `await` where its term is over, which is before another
    /// can lead. Where it gives `Continue`, the lock is released, and the node stands again after a
    /// pause; where it gives `Break`, the lock is released and the election ends.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] where the timings cannot be, before anybody is asked; and errors of
    /// the backend that do not go away by themselves
    /// ([`Error::is_retryable`](crate::Error::is_retryable)). The others are told by
    /// [`watch`](Self::watch), and it is tried again.
    ///
    /// # Cancel safety
    ///
    /// The body is dropped where it is, and the lock is released without being waited for. To wait
    /// for that use [`run_until`](Self::run_until).
    pub async fn run<T, F>(self, body: impl FnMut(Term) -> F) -> Result<T>
    where
        F: Future<Output = ControlFlow<T>>,
    {
        let campaign = self.campaign()?;
        match campaign.run(pending(), body).await? {
            Some(value) => Ok(value),
            None => pending().await,
        }
    }

    /// As [`run`](Self::run), until `stop` resolves: then the body is dropped, the lock is released,
    /// so that the next node leads at once, and `None` is returned when that is done.
    ///
    /// A body that has to end in its own way waits for the same signal itself, and gives `Break`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run). Where the release could not be confirmed within 5 s nothing is said;
    /// the backend goes on with it.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_until<T, F>(
        self,
        stop: impl Future<Output = ()>,
        body: impl FnMut(Term) -> F,
    ) -> Result<Option<T>>
    where
        F: Future<Output = ControlFlow<T>>,
    {
        self.campaign()?.run(stop, body).await
    }

    fn campaign(self) -> Result<Campaign<B>> {
        let invalid = |option, reason| Err(Error::InvalidOption { option, reason });
        let retry = self.retry;
        if retry.is_zero() || retry > LONGEST_RETRY {
            return invalid(
                "retry",
                format!("{retry:?} is not above zero and at most a day"),
            );
        }
        if let Some(step_down) = &self.step_down {
            let before = step_down.before;
            match self.lock.lease.ttl {
                Some(ttl) if before <= ttl / 2 => {}
                Some(ttl) => {
                    let reason = format!("{before:?} is more than half of the ttl, {ttl:?}");
                    return invalid("step_down_before", reason);
                }
                None => return invalid("step_down_before", "it needs the election's ttl".into()),
            }
        }
        Ok(Campaign {
            lock: self.lock,
            key: self.key,
            retry,
            step_down: self.step_down,
            holders: self.holders,
            standing: self.standing,
        })
    }
}

impl<B: LockBackend> fmt::Debug for Election<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("key", &self.key)
            .field("standing", &*self.standing.borrow())
            .finish_non_exhaustive()
    }
}
