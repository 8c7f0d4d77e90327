//! The suite of tests that every lock backend passes, for backends of your own too.
//!
//! Implement [`Harness`], which starts a world and opens nodes in it, and call [`conformance!`]
//! with what your backend can do. It emits one named `#[test]` a case, so that a failure tells
//! the promise that was broken, and a case that is added here reaches every backend:
//!
//! ```
//! use async_trait::async_trait;
//! use sqlock_conformance::{Harness, LossHarness};
//! use sqlock_core::{Locks, LossCause, MemoryBackend};
//!
//! struct Memory(MemoryBackend);
//!
//! #[async_trait]
//! impl Harness for Memory {
//!     type Backend = MemoryBackend;
//!     async fn start() -> Self {
//!         Self(MemoryBackend::new())
//!     }
//!     async fn node(&self) -> Locks<MemoryBackend> {
//!         Locks::new(self.0.another_node())
//!     }
//!     async fn held(&self) -> usize {
//!         self.0.held()
//!     }
//! }
//!
//! #[async_trait]
//! impl LossHarness for Memory {
//!     async fn break_holder(&self, node: &Locks<MemoryBackend>) {
//!         node.backend().faults().lose_all(LossCause::ConnectionClosed);
//!     }
//! }
//!
//! sqlock_conformance::conformance! {
//!     harness = Memory,
//!     capabilities = [advisory_ids, elections, inspect, loss, lost_readers, rebirth, shared, shutdown, tokens, writers_first],
//! }
//! # fn main() {}
//! ```
//!
//! Every case runs on a multi-threaded runtime of its own, in a world of its own, and within
//! [`Harness::TIME_LIMIT`]; at its end nothing may be held.
//!
//! | capability | what it means |
//! |---|---|
//! | *(always)* | exclusive locks: exclusion, waiting, cancellation, release, load |
//! | `advisory_ids` | keys are PostgreSQL's advisory ids: a name and its number are one lock |
//! | `clock_steps` | the harness can make the clock of leases step ([`ClockHarness`]) |
//! | `elections` | a loss is told by itself ([`TellsLoss`](sqlock_core::TellsLoss)), and the harness can bring it about |
//! | `inspect` | the backend tells who holds a lock ([`InspectBackend`](sqlock_core::InspectBackend)) |
//! | `leases` | locks run out unless they are renewed ([`LeaseHarness`]) |
//! | `loss` | the harness can break a holder's connection ([`LossHarness`]) |
//! | `lost_readers` | both `loss` and `writers_first` |
//! | `rebirth` | a node goes on, on another runtime, where its own was shut down |
//! | `shared` | there is a shared mode ([`SharedBackend`](sqlock_core::SharedBackend)) |
//! | `shutdown` | a shut-down ends what guards hold, and does not wait for their owners |
//! | `tokens` | guards carry fencing tokens |
//! | `writers_first` | a stream of readers does not starve a waiting writer ([`WritersFirst`](sqlock_core::WritersFirst)) |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "support for tests: a panic with a message is how it reports"
)]

pub mod cases;
mod harness;
mod macros;
mod run;
mod support;
mod world;

pub use harness::{ClockHarness, Harness, LeaseHarness, LossHarness, Step};
pub use run::run;
pub use world::World;
