use std::{fmt, time::Duration};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde::{Deserialize, Serialize};

use super::{Backend, Setup, TROUBLE, Way};

/// What the nemesis can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// `pg_terminate_backend` for every worker's backend.
    TerminateAll,
    /// `pg_terminate_backend` for one that holds or waits.
    TerminateOne,
    /// `kill -9` of one backend: the server ends all others and recovers.
    KillBackend,
    /// `kill -9` of the whole server, and a start.
    KillServer,
    /// A fast stop, and a start.
    FastStop,
    /// An immediate stop, and a start.
    ImmediateStop,
    /// The whole server hangs (SIGSTOP), for a while.
    PauseServer,
    /// A worker hangs (SIGSTOP), past every limit.
    PauseWorker,
    /// `kill -9` of a worker; another takes its place.
    KillWorker,
    /// All connections are cut, and can be made again.
    Cut,
    /// Nothing goes through in either direction, for a while, and no connection is told.
    BlackHole,
    /// What the server says does not arrive, for a while.
    Deaf,
    /// What the workers say does not arrive, for a while.
    Mute,
    /// Everything takes longer, for a while.
    Delay,
    /// A byte at a time, for a while.
    Trickle,
    /// The pooler is killed and started again.
    RestartPooler,
    /// `RELOAD` of the pooler.
    ReloadPooler,
    /// `RECONNECT` of the pooler.
    ReconnectPooler,
    /// Another client takes all of the server's lock memory, for a while.
    LockMemory,
    /// The server's host dies, and another takes over its disk under the same URL.
    ReplaceHost,
    /// The disk of the table of leases is full, for a while.
    DiskFull,
    /// A worker's wall clock jumps by an hour.
    StepClock,
}

/// One fault at its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// After the one before is over.
    pub after: Duration,
    /// What.
    pub fault: Fault,
    /// For how long, where it has a length.
    pub length: Duration,
    /// Which worker or backend, counted modulo as many as there are.
    pub victim: usize,
}

/// All faults of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// In order.
    pub steps: Vec<Step>,
}

impl Schedule {
    /// The same for the same seed and setup.
    #[must_use]
    pub fn of_seed(seed: u64, setup: Setup) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let faults = possible(setup);
        let mut steps = Vec::new();
        let mut time = Duration::ZERO;
        while time < TROUBLE {
            let step = Step {
                after: Duration::from_millis(random.random_range(50..900)),
                fault: *faults.choose(&mut random).expect("there are faults"),
                length: Duration::from_millis(random.random_range(100..2600)),
                victim: random.random_range(0..1000),
            };
            time += step.after + step.fault.takes(step.length);
            steps.push(step);
        }
        Self { steps }
    }
}

impl Fault {
    fn takes(self, length: Duration) -> Duration {
        if self.lasts() { length } else { Duration::ZERO }
    }

    /// Whether it has a length.
    #[must_use]
    pub fn lasts(self) -> bool {
        matches!(
            self,
            Self::PauseServer
                | Self::PauseWorker
                | Self::BlackHole
                | Self::Deaf
                | Self::Mute
                | Self::Delay
                | Self::Trickle
                | Self::LockMemory
                | Self::DiskFull
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

fn possible(setup: Setup) -> Vec<Fault> {
    let mut faults = vec![
        Fault::TerminateAll,
        Fault::TerminateOne,
        Fault::KillBackend,
        Fault::KillServer,
        Fault::FastStop,
        Fault::ImmediateStop,
        Fault::PauseServer,
        Fault::PauseWorker,
        Fault::PauseWorker,
        Fault::KillWorker,
        Fault::Cut,
        Fault::BlackHole,
        Fault::Deaf,
        Fault::Mute,
        Fault::Delay,
        Fault::Trickle,
        Fault::StepClock,
    ];
    // A pooler would have to be told, too.
    if setup.way == Way::Direct {
        faults.push(Fault::ReplaceHost);
    }
    if setup.backend == Backend::Ttl {
        faults.push(Fault::DiskFull);
    }
    if setup.way == Way::Pooled {
        faults.extend([
            Fault::RestartPooler,
            Fault::ReloadPooler,
            Fault::ReconnectPooler,
        ]);
    }
    if setup.backend != Backend::Ttl {
        faults.push(Fault::LockMemory);
    }
    faults
}
