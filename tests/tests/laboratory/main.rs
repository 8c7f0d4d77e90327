//! The fault laboratory: its checker, on histories that are made up; a few of its seeds; and workers
//! that are wrong on purpose, which it has to find.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests"
)]

mod checker;
mod seeds;
