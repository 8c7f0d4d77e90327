//! Keys of other schemes: the locks that libraries in other languages, and migration tools, take in
//! PostgreSQL, so that a Rust service excludes them, and they it.
//!
//! Use it as `sqlock::neighbours`, under the feature `neighbours` of the crate `sqlock`.
//!
//! ```
//! use sqlock_core::AdvisoryId;
//! use sqlock_neighbours as neighbours;
//!
//! // pglock.advisory("daily-report")
//! let key = neighbours::django_pglock("daily-report");
//! assert_eq!(key.id(), AdvisoryId::Bigint(-2551168849325057047));
//! ```
//!
//! The keys are numbers, so that a namespace of `Locks` leaves them as they are, and they are shown as
//! numbers. They meet their neighbours on the advisory backends, `session` and `xact`, in the same
//! database. A neighbour that waits in `pg_advisory_lock` is granted a lock at once when ours is
//! released; one of ours that waits for a neighbour's sees the release at its next poll.
//!
//! A scheme belongs to its library, which can change it. Each function says for which versions its
//! numbers were compared.

mod django;
mod dotnet;
mod flyway;
mod golang_migrate;
mod hashtext;
mod rails;
mod ruby;
mod sqlalchemy;
mod sqlx;

pub use django::django_pglock;
pub use dotnet::dotnet;
pub use flyway::flyway;
pub use golang_migrate::golang_migrate;
pub use hashtext::{hashtext, hashtextextended};
pub use rails::rails_migrations;
pub use ruby::{with_advisory_lock, with_advisory_lock_prefixed};
pub use sqlalchemy::sqlalchemy_dlock;
pub use sqlx::{sqlx, sqlx_migrations};
