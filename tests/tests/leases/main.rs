//! Leases on a real PostgreSQL: what the database sees, and what becomes of them when things go
//! wrong.

#[path = "../support/mod.rs"]
mod support;

mod costs;
mod holding;
mod pauses;
mod schedules;
mod table;
mod text;
mod tools;
