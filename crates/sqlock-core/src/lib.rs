//! The core of [sqlock](https://docs.rs/sqlock): what a lock backend is, and what every lock has.
//!
//! Use the crate `sqlock`, which re-exports all of this beside the backends. Depend on this crate
//! to write a backend of your own: implement [`LockBackend`] and [`Held`], and run the suite of
//! `sqlock-conformance` against it.
//!
//! - [`Locks`] is what an application holds: the verbs, over one backend.
//! - [`LockGuard`] is a held lock. Dropping it releases the lock.
//! - [`Lost`] tells when a lock was lost while it was held, and why.
//! - [`LockKey`] names a lock; plain SQL can compute the same id.
//! - [`memory::MemoryBackend`] keeps locks in this process, for unit tests.

mod backend;
mod chance;
mod deadline;
mod election;
mod erased;
mod error;
mod fencing_fault;
mod guard;
mod holder;
mod key;
mod lock;
mod locks;
mod lost;
pub mod memory;
mod names;
mod queued;
mod read_write;
mod request;
mod semaphore;
mod token;

pub use backend::{
    Held, InspectBackend, LeaseBackend, Leased, LockBackend, QueueBackend, SharedBackend,
    TellsLoss, Transactional, WritersFirst,
};
pub use deadline::{Deadline, Wait};
pub use election::{Election, ElectionWatch, Health, Standing, Term};
pub use erased::{BoxHeld, DynBackend, DynSharedBackend, DynTellsLoss, DynWritersFirst};
pub use error::{BoxError, Error, Result};
pub use fencing_fault::FencingFault;
pub use guard::LockGuard;
pub use holder::Holder;
pub use key::{AdvisoryId, InvalidKey, LockKey, RESERVED_PAIR_CLASSES};
pub use lock::Lock;
pub use locks::{Locks, LocksBuilder};
pub use lost::{Expiry, LossCause, Lost, LostSender};
pub use memory::MemoryBackend;
pub use names::{IntoLockKey, IntoLockKeys, in_lock_order};
pub use queued::{Queued, Whose};
pub use read_write::{ReadGuard, ReadWrite, WriteGuard};
pub use request::{KeyVisibility, LeaseTerms, Mode, Request};
pub use semaphore::Semaphore;
pub use token::FencingToken;
