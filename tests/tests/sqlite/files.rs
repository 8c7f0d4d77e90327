//! The file, and the processes that share it.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use sqlock::{Error, Locks, SqliteBackend};
use sqlock_tests::signal;
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::harness::options;

const PATIENCE: Duration = Duration::from_secs(20);

async fn node(path: &Path) -> Locks<SqliteBackend> {
    Locks::new(
        options()
            .open(path)
            .await
            .expect("the file opens"),
    )
}

async fn raw(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path);
    SqliteConnection::connect_with(&options)
        .await
        .expect("the file opens")
}

/// A process that adds to a counter under the lock, or holds it: see `src/bin/share-file.rs`.
fn process(path: &Path, what: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_share-file"))
        .args([path.as_os_str(), what.as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

#[tokio::test]
async fn fifty_open_the_file_at_once() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("deep").join("down").join("locks.db");
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let path = path.clone();
        tasks.spawn(async move { SqliteBackend::open(path).await.map(drop) });
    }
    for outcome in tasks.join_all().await {
        outcome.unwrap();
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// Read, wait, write: without the lock, additions would be lost.
#[tokio::test]
async fn processes_never_overlap() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let processes: Vec<_> = (0..8).map(|_| process(&path, "count")).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let counted = fs::read_to_string(path.with_extension("count")).unwrap();
    assert_eq!(counted, "200");
}

/// The next holder comes after the TTL, and with a higher token.
#[tokio::test]
async fn a_killed_holder_is_succeeded() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let locks = node(&path).await;
    let mut last = 0;
    for _ in 0..3 {
        let mut holder = process(&path, "hold");
        let held = async {
            while locks.backend().lease("job").await.unwrap().is_none() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, held).await.unwrap();
        signal::kill(i32::try_from(holder.id()).unwrap());
        holder.wait().unwrap();
        let token = locks.backend().lease("job").await.unwrap().unwrap().token;
        let lease = locks.acquire_within("job", PATIENCE).await.unwrap();
        let next = lease.token().unwrap();
        assert!(next > token && token.get() > last);
        last = next.get();
        lease.release().await.unwrap();
    }
}

/// A refusal takes no write lock and changes nothing.
#[tokio::test]
async fn a_refused_attempt_writes_nothing() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let (one, other) = (node(&path).await, node(&path).await);
    let lease = one.lock("job").ttl(Duration::from_secs(600)).await.unwrap();
    let log = path.with_extension("db-wal");
    let before = fs::metadata(&log).unwrap().len();
    let mut writer = raw(&path).await;
    sqlx::query("begin immediate")
        .execute(&mut writer)
        .await
        .unwrap();
    for _ in 0..20 {
        assert!(other.try_acquire("job").await.unwrap().is_none());
    }
    sqlx::query("rollback").execute(&mut writer).await.unwrap();
    assert_eq!(fs::metadata(&log).unwrap().len(), before);
    drop(lease);
}

/// Somebody has the file locked for less than the TTL.
#[tokio::test]
async fn a_locked_file_delays_and_loses_nothing() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let locks = node(&path).await;
    let lease = locks.acquire("job").await.unwrap();
    let mut writer = raw(&path).await;
    sqlx::query("begin immediate")
        .execute(&mut writer)
        .await
        .unwrap();
    sleep(Duration::from_secs(2)).await;
    sqlx::query("rollback").execute(&mut writer).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    lease.check().unwrap();
    assert!(lease.is_valid());
    lease.release().await.unwrap();
}

/// Tokens rise over sweeps, and what is held stays.
#[tokio::test]
async fn tokens_rise_over_sweeps() {
    let directory = TempDir::new().unwrap();
    let locks = node(&directory.path().join("locks.db")).await;
    let held = locks.acquire("held").await.unwrap();
    let mut last = None;
    for _ in 0..5 {
        let lease = locks.acquire("job").await.unwrap();
        assert!(lease.token() > last);
        last = lease.token();
        lease.release().await.unwrap();
        assert_eq!(locks.backend().sweep(Duration::ZERO).await.unwrap(), 1);
    }
    assert!(held.is_valid());
    assert_eq!(locks.backend().leases().await.unwrap().len(), 1);
}

/// The leases of an earlier boot have ended with their holders.
#[tokio::test]
async fn a_reboot_ends_all_leases() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let (one, other) = (node(&path).await, node(&path).await);
    let lease = one.acquire("job").await.unwrap();
    let mut writer = raw(&path).await;
    let rewrite = "update sqlock_leases set boot = 'an earlier one'";
    sqlx::query(rewrite).execute(&mut writer).await.unwrap();
    let next = other.try_acquire("job").await.unwrap().expect("it is free");
    assert!(next.token() > lease.token());
    let lost = timeout(PATIENCE, lease.lost()).await.unwrap();
    assert!(matches!(lost, Error::Lost { .. }));
}

#[tokio::test]
async fn what_is_no_database_is_told() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    fs::write(
        &path,
        "this is a text, and quite a long one, so that it can be no database",
    )
    .unwrap();
    let error = SqliteBackend::open(&path).await.unwrap_err();
    assert!(!error.is_retryable());
    assert!(format!("{error:?}").contains("not a database"), "{error:?}");
    SqliteBackend::open(":memory:").await.unwrap_err();
    SqliteBackend::open("").await.unwrap_err();
}

#[tokio::test]
async fn a_table_of_another_shape_is_told_by_its_column() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    drop(SqliteBackend::open(&path).await.unwrap());
    let mut writer = raw(&path).await;
    let alter = "alter table sqlock_leases drop column payload";
    sqlx::query(alter).execute(&mut writer).await.unwrap();
    let error = SqliteBackend::open(&path).await.unwrap_err();
    assert!(
        format!("{error:?}").contains("no column payload (TEXT)"),
        "{error:?}"
    );
}
