#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use sqlock_core::{
    AdvisoryId, BoxError, BoxHeld, Deadline, DynBackend, DynSharedBackend, DynTellsLoss,
    DynWritersFirst, Election, ElectionWatch, Error, Expiry, FencingFault, FencingToken, Health,
    Held, Holder, InspectBackend, IntoLockKey, IntoLockKeys, InvalidKey, KeyVisibility,
    LeaseBackend, LeaseTerms, Leased, Lock, LockBackend, LockGuard, LockKey, Locks, LocksBuilder,
    LossCause, Lost, LostSender, Mode, QueueBackend, Queued, RESERVED_PAIR_CLASSES, ReadGuard,
    ReadWrite, Request, Result, Semaphore, SharedBackend, Standing, TellsLoss, Term, Transactional,
    Wait, Whose, WriteGuard, WritersFirst,
};

/// Locks in this process, for unit tests.
#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub mod memory {
    pub use sqlock_core::memory::*;
}

/// Keys of other schemes: what libraries in other languages, and migration tools, lock.
#[cfg(feature = "neighbours")]
#[cfg_attr(docsrs, doc(cfg(feature = "neighbours")))]
pub mod neighbours {
    pub use sqlock_neighbours::{
        django_pglock, dotnet, flyway, golang_migrate, hashtext, hashtextextended,
        rails_migrations, sqlalchemy_dlock, sqlx, sqlx_migrations, with_advisory_lock,
        with_advisory_lock_prefixed,
    };
}

/// Session-advisory locks: many locks on one connection.
#[cfg(feature = "session")]
#[cfg_attr(docsrs, doc(cfg(feature = "session")))]
pub mod session {
    pub use sqlock_session::{Fencing, Preflight, SessionBackend, SessionHeld, SessionOptions};
}

/// Leases in a table of PostgreSQL, with fencing tokens.
#[cfg(feature = "ttl")]
#[cfg_attr(docsrs, doc(cfg(feature = "ttl")))]
pub mod ttl {
    pub use sqlock_ttl::{
        AnyOrder, InOrder, LeaseOptions, LeaseRecord, Order, Protocol, SharedTable,
        SharedTableBackend, TtlBackend, TtlHeld, TtlOptions,
    };
}

/// Leases in a file of SQLite, for the processes of one host.
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub mod sqlite {
    pub use sqlock_ttl::{
        AnyOrder, InOrder, LeaseOptions, LeaseRecord, Order, SqliteBackend, SqliteOptions, TtlHeld,
    };
}

/// Transaction-advisory locks: lock and work are one transaction.
#[cfg(feature = "xact")]
#[cfg_attr(docsrs, doc(cfg(feature = "xact")))]
pub mod xact {
    pub use sqlock_xact::{
        Fencing, LockIn, Preflight, XactBackend, XactHeld, XactOptions, lock_all_in,
        lock_all_shared_in, lock_in, lock_shared_in, try_lock_all_in, try_lock_all_shared_in,
        try_lock_in, try_lock_shared_in,
    };
}

#[cfg(feature = "memory")]
#[doc(no_inline)]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub use memory::MemoryBackend;
#[cfg(feature = "session")]
#[doc(no_inline)]
#[cfg_attr(docsrs, doc(cfg(feature = "session")))]
pub use session::SessionBackend;
#[cfg(feature = "sqlite")]
#[doc(no_inline)]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use sqlite::SqliteBackend;
#[cfg(feature = "ttl")]
#[doc(no_inline)]
#[cfg_attr(docsrs, doc(cfg(feature = "ttl")))]
pub use ttl::TtlBackend;
#[cfg(feature = "xact")]
#[doc(no_inline)]
#[cfg_attr(docsrs, doc(cfg(feature = "xact")))]
pub use xact::XactBackend;
