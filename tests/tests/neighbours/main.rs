//! Other libraries' locks and ours on one server: under a neighbour's key each excludes the other.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod contention;
mod python;
mod sqlx_lock;
#[path = "../support/mod.rs"]
mod support;

use async_trait::async_trait;
use sqlock::{LockKey, Mode, neighbours};
use sqlock_tests::TestDatabase;

use crate::{contention::contend, python::Python, sqlx_lock::SqlxLock, support::run};

const NAMES: [&str; 3] = ["daily-report", "ロック", "a name with blanks, and größe"];

/// A lock of another library, on a connection of its own. It holds one at a time.
#[async_trait]
trait Neighbour: Send {
    async fn try_acquire(&mut self, name: &str, mode: Mode) -> bool;

    /// Asks for a lock that is then awaited by [`Neighbour::granted`].
    async fn begin_to_wait(&mut self, name: &str, mode: Mode);
    async fn granted(&mut self);

    async fn release(&mut self);
}

#[test]
fn the_lock_of_sqlx() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut theirs = SqlxLock::connect(&database).await;
        for name in NAMES {
            let key = neighbours::sqlx(name);
            contend(&database, &mut theirs, name, &key, &[Mode::Exclusive]).await;
        }
    });
}

/// Of every length up to several blocks, and with every byte that text can have.
#[test]
fn the_numbers_of_hashtext() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut sql = database.connect().await;
        for length in 0..50_u32 {
            let letters = (0..length).map(|at| char::from_u32(1 + at * 37 + length * 7));
            let name: String = letters.flatten().collect();
            let [short, long]: [i64; 2] =
                sqlx::query_scalar("select array[hashtext($1), hashtextextended($1, 0)]")
                    .bind(&name)
                    .fetch_one(&mut sql)
                    .await
                    .unwrap();
            let ours = [
                neighbours::hashtext(&name),
                neighbours::hashtextextended(&name),
            ];
            assert_eq!(ours, [short, long].map(LockKey::from_id), "{name:?}");
        }
    });
}

#[test]
fn the_lock_of_django_pglock() {
    contend_with_python("django-pglock", neighbours::django_pglock);
}

#[test]
fn the_lock_of_sqlalchemy_dlock() {
    contend_with_python("sqlalchemy-dlock", |name| {
        neighbours::sqlalchemy_dlock(name)
    });
}

fn contend_with_python(library: &str, key: impl Fn(&str) -> LockKey) {
    run(async || {
        let database = TestDatabase::create().await;
        let mut theirs = Python::start(library, &database).await;
        for name in NAMES {
            let modes = [Mode::Exclusive, Mode::Shared];
            contend(&database, &mut theirs, name, &key(name), &modes).await;
        }
    });
}
