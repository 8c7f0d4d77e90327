//! One file, and those who use it from one process.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use sqlock::{Error, SqliteBackend};
use sqlx::SqliteConnection;
use tokio::{task::JoinSet, time::timeout};

use crate::tools::{PATIENCE, node, place, raw, run};

#[tokio::test]
async fn fifty_open_the_file_at_once() {
    let (_directory, path) = place();
    let path = path.with_file_name("deep").join("down").join("locks.db");
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let path = path.clone();
        tasks.spawn(async move { SqliteBackend::open(path).await.map(drop) });
    }
    for outcome in tasks.join_all().await {
        outcome.unwrap();
    }
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

/// It changes with every commit of anybody else.
async fn data_version(connection: &mut SqliteConnection) -> i64 {
    let version = sqlx::query_scalar("pragma data_version");
    version.fetch_one(connection).await.unwrap()
}

/// A refusal takes no write lock and changes nothing.
#[tokio::test]
async fn a_refused_attempt_writes_nothing() {
    let (_directory, path) = place();
    let (one, other) = (node(&path).await, node(&path).await);
    let lease = one.lock("job").ttl(Duration::from_secs(600)).await.unwrap();
    let log = path.with_extension("db-wal");
    let before = fs::metadata(&log).unwrap().len();
    let (mut writer, mut reader) = (raw(&path).await, raw(&path).await);
    let version = data_version(&mut reader).await;
    run(&mut writer, "begin immediate").await;
    for _ in 0..20 {
        assert!(other.try_acquire("job").await.unwrap().is_none());
        let both = other.lock_all(["free", "job"]).try_acquire().await;
        assert!(both.unwrap().is_none());
        assert!(
            node(&path)
                .await
                .try_acquire("job")
                .await
                .unwrap()
                .is_none()
        );
    }
    run(&mut writer, "rollback").await;
    assert_eq!(data_version(&mut reader).await, version);
    assert_eq!(fs::metadata(&log).unwrap().len(), before);
    // the measure measures
    drop(other.acquire("free").await.unwrap());
    assert_ne!(data_version(&mut reader).await, version);
    drop(lease);
}

/// Tokens rise over sweeps, and what is held stays.
#[tokio::test]
async fn tokens_rise_over_sweeps() {
    let (_directory, path) = place();
    let locks = node(&path).await;
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
    let (_directory, path) = place();
    let (one, other) = (node(&path).await, node(&path).await);
    let lease = one.acquire("job").await.unwrap();
    let reboot = "update sqlock_leases set boot = 'an earlier one'";
    run(&mut raw(&path).await, reboot).await;
    let next = other.try_acquire("job").await.unwrap().expect("it is free");
    assert!(next.token() > lease.token());
    let lost = timeout(PATIENCE, lease.lost()).await.unwrap();
    assert!(matches!(lost, Error::Lost { .. }));
}
