//! The book's examples, compiled and run as documentation tests.

macro_rules! chapters {
    ($($name:ident = $file:literal),* $(,)?) => {
        $(#[doc = include_str!(concat!("../../docs/src/", $file))] mod $name {})*
    };
}

chapters! {
    behind_pgbouncer = "behind-pgbouncer.md",
    choosing = "choosing.md",
    command = "command.md",
    decisions = "decisions.md",
    elections = "elections.md",
    examples = "examples.md",
    failover = "failover.md",
    fencing = "fencing.md",
    getting_started = "getting-started.md",
    guarantees = "guarantees.md",
    holding = "holding-a-lock.md",
    how_it_works = "how-it-works.md",
    introduction = "introduction.md",
    keys = "keys.md",
    leases = "leases.md",
    neighbours = "neighbours.md",
    operations = "operations.md",
    own_transaction = "own-transaction.md",
    read_write = "read-write.md",
    schedules = "schedules.md",
    semaphores = "semaphores.md",
    security = "security.md",
    testing = "testing.md",
    transaction_locks = "transaction-locks.md",
    versions = "versions.md",
    waiting = "waiting.md",
}
