//! What is measured, one file each.

mod hand_offs;
mod held;
mod memories;
mod one_key;
mod ours;
mod renewal;
mod session;
pub(crate) mod sqlite;
mod tasks;
mod transactions;
mod ttl;
mod waiting;

use anyhow::Result;
use futures_util::future::BoxFuture;

use crate::contest::Pace;
use crate::report::Table;
use crate::servers::Servers;

type Subject = for<'a> fn(&'a Servers, Pace) -> BoxFuture<'a, Result<Table>>;

/// In the order of the report.
pub(crate) fn all() -> Vec<(&'static str, Subject)> {
    vec![
        ("session: one task", |servers, pace| {
            Box::pin(session::run(servers, pace))
        }),
        ("session: 8 tasks", |servers, pace| {
            Box::pin(tasks::run(servers, pace, 8))
        }),
        ("session: 64 tasks", |servers, pace| {
            Box::pin(tasks::run(servers, pace, 64))
        }),
        ("session: 1000 tasks", |servers, pace| {
            Box::pin(tasks::run(servers, pace, 1000))
        }),
        ("session: held", |servers, pace| {
            Box::pin(held::run(servers, pace))
        }),
        ("session: one key", |servers, pace| {
            Box::pin(one_key::run(servers, pace))
        }),
        ("hand-off: 1 waiter", |servers, pace| {
            Box::pin(hand_offs::run(servers, pace, 1))
        }),
        ("hand-off: 10 waiters", |servers, pace| {
            Box::pin(hand_offs::run(servers, pace, 10))
        }),
        ("hand-off: 100 waiters", |servers, pace| {
            Box::pin(hand_offs::run(servers, pace, 100))
        }),
        ("waiting", |servers, pace| {
            Box::pin(waiting::run(servers, pace))
        }),
        ("memory", |servers, _| Box::pin(memories::run(servers))),
        ("xact: direct, 1 task", |servers, pace| {
            Box::pin(transactions::direct(servers, pace, 1))
        }),
        ("xact: direct, 8 tasks", |servers, pace| {
            Box::pin(transactions::direct(servers, pace, 8))
        }),
        ("xact: direct, 64 tasks", |servers, pace| {
            Box::pin(transactions::direct(servers, pace, 64))
        }),
        ("xact: pooled, 1 task", |servers, pace| {
            Box::pin(transactions::pooled(servers, pace, 1))
        }),
        ("xact: pooled, 8 tasks", |servers, pace| {
            Box::pin(transactions::pooled(servers, pace, 8))
        }),
        ("xact: pooled, 64 tasks", |servers, pace| {
            Box::pin(transactions::pooled(servers, pace, 64))
        }),
        ("ttl: fsync, 1 task", |servers, pace| {
            Box::pin(ttl::durable(servers, pace, 1))
        }),
        ("ttl: fsync, 8 tasks", |servers, pace| {
            Box::pin(ttl::durable(servers, pace, 8))
        }),
        ("ttl: fsync, 64 tasks", |servers, pace| {
            Box::pin(ttl::durable(servers, pace, 64))
        }),
        ("ttl: no fsync, 1 task", |servers, pace| {
            Box::pin(ttl::fast(servers, pace, 1))
        }),
        ("ttl: no fsync, 64 tasks", |servers, pace| {
            Box::pin(ttl::fast(servers, pace, 64))
        }),
        ("ttl: pooled, 64 tasks", |servers, pace| {
            Box::pin(ttl::pooled(servers, pace, 64))
        }),
        ("renewal: 1000", |servers, pace| {
            Box::pin(renewal::run(servers, pace, 1000))
        }),
        ("renewal: 10000", |servers, pace| {
            Box::pin(renewal::run(servers, pace, 10_000))
        }),
        ("sqlite: 1 process", |_, pace| {
            Box::pin(sqlite::run(pace, 1))
        }),
        ("sqlite: 8 processes", |_, pace| {
            Box::pin(sqlite::run(pace, 8))
        }),
    ]
}
