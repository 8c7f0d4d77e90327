//! What sqlock's PostgreSQL backends share.
//!
//! Applications use the crate `sqlock`. This one is for backends: [`Failure`] says what an error of
//! the server means for a lock, [`ServerFacts`] what the server is and how many locks a process may
//! take, [`connect_options`] what a URL says; [`Fencing`] gives advisory locks their tokens; [`preflight`] looks at the server before a first lock.

#![deny(clippy::indexing_slicing)]

mod connect;
mod facts;
mod failure;
mod fencing;
mod inspect;
pub mod preflight;
mod shield;
mod startup;

pub use connect::{connect_options, plain_options};
pub use facts::{LOCK_MEMORY_SETTING, ServerFacts};
pub use failure::Failure;
pub use fencing::{Fencing, TIMELINE, TokenKind, TokenSource};
pub use inspect::holders;
pub use shield::shielded;
