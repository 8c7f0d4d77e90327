use std::{sync::Arc, time::Duration};

use crate::{Deadline, LockKey};

/// Whether a lock excludes all others, or only exclusive ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// One holder.
    Exclusive,
    /// Any number of shared holders, and no exclusive one beside them.
    Shared,
}

impl Mode {
    /// The mode's name in spans and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

/// Where the names of keys may appear in `tracing` events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KeyVisibility {
    /// At debug level and below; above, only the id. The default: names can hold personal data.
    #[default]
    DebugOnly,
    /// At every level.
    Always,
}

/// What a request says of its lease. What it does not say is the backend's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseTerms {
    /// For how long the lease is valid unless it is renewed.
    pub ttl: Option<Duration>,
    /// For how long it stays taken from its acquisition on, even if it is released before.
    pub hold_at_least: Option<Duration>,
    /// What the holder writes for others to read.
    pub payload: Option<Arc<str>>,
}

/// What core asks of a backend: these keys, all of them or none.
#[derive(Debug, Clone)]
pub struct Request {
    keys: Arc<[LockKey]>,
    mode: Mode,
    deadline: Option<Deadline>,
    label: Option<Arc<str>>,
    visibility: KeyVisibility,
    lease: LeaseTerms,
    priority: i16,
}

impl Request {
    pub(crate) fn new(
        keys: Arc<[LockKey]>,
        mode: Mode,
        deadline: Option<Deadline>,
        label: Option<Arc<str>>,
        visibility: KeyVisibility,
    ) -> Self {
        Self {
            keys,
            mode,
            deadline,
            label,
            visibility,
            lease: LeaseTerms::default(),
            priority: 0,
        }
    }

    pub(crate) fn with_priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    pub(crate) fn with_lease(mut self, lease: LeaseTerms) -> Self {
        self.lease = lease;
        self
    }

    /// At least one, without doubles, in the order in which they are to be taken: by id.
    #[must_use]
    pub fn keys(&self) -> &Arc<[LockKey]> {
        &self.keys
    }

    /// The first of the keys, by which spans and errors name the request.
    #[must_use]
    pub fn first_key(&self) -> &LockKey {
        &self.keys[0]
    }

    /// `None`: try, and do not wait.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// Exclusive from [`LockBackend::acquire`](crate::LockBackend::acquire), shared from
    /// [`SharedBackend::acquire_shared`](crate::SharedBackend::acquire_shared).
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the holder is called, for backends that can show it to others.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Where the keys' names may be logged.
    #[must_use]
    pub fn visibility(&self) -> KeyVisibility {
        self.visibility
    }

    /// What the request says of its lease, for backends that have leases.
    #[must_use]
    pub fn lease(&self) -> &LeaseTerms {
        &self.lease
    }

    /// Before whom it stands in line, for backends that keep a queue: before all with a lower one.
    #[must_use]
    pub fn priority(&self) -> i16 {
        self.priority
    }
}
