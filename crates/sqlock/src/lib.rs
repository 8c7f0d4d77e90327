//! x
pub use sqlock_core::*;
