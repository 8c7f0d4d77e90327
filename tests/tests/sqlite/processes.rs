//! Processes that share a file.

use std::{collections::HashMap, fs, os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use rand::Rng as _;
use sqlock_tests::{eventually, signal};
use sqlx::SqliteConnection;
use tokio::time::{Instant, sleep};

use crate::tools::{PATIENCE, Process, command, node, output, place, raw};

fn noted_tokens(path: &Path, key: &str) -> Vec<i64> {
    let noted = fs::read_to_string(path.with_extension(format!("{key}-tokens")));
    // what a process had begun to write when it was killed is no line
    let noted = noted.unwrap_or_default();
    let complete = noted.rsplit_once('\n').map_or("", |(lines, _)| lines);
    complete
        .lines()
        .map(|line| line.parse().expect("a token"))
        .collect()
}

#[tokio::test]
async fn fifty_processes_make_the_file_at_once() {
    let (_directory, path) = place();
    let path = path.with_file_name("deep").join("down").join("locks.db");
    let processes: Vec<_> = (0..50).map(|_| Process::start(&path, &["open"])).collect();
    processes.into_iter().for_each(Process::succeeds);
    assert!(
        node(&path)
            .await
            .try_acquire("job")
            .await
            .unwrap()
            .is_some()
    );
}

/// Read, wait, write: without the lock, additions would be lost. And each token is above those of
/// all earlier holders.
#[tokio::test]
async fn eight_processes_lose_no_update() {
    let (_directory, path) = place();
    let arguments = ["count", "100", "3", "10000"];
    let processes: Vec<_> = (0..8).map(|_| Process::start(&path, &arguments)).collect();
    processes.into_iter().for_each(Process::succeeds);
    let mut counted = 0;
    for key in ["key-0", "key-1", "key-2"] {
        let count = fs::read_to_string(path.with_extension(key)).unwrap();
        counted += count.parse::<usize>().unwrap();
        let tokens = noted_tokens(&path, key);
        assert_eq!(count, tokens.len().to_string());
        assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    }
    assert_eq!(counted, 800);
}

/// The next holder comes after the TTL, and with a higher token.
#[tokio::test]
async fn a_killed_holder_is_succeeded_after_the_ttl() {
    let (_directory, path) = place();
    let locks = node(&path).await;
    for _ in 0..3 {
        let mut holder = Process::start(&path, &["hold", "1500"]);
        let old: i64 = holder.line().parse().unwrap();
        let killed = Instant::now();
        holder.kill();
        assert!(locks.try_acquire("job").await.unwrap().is_none());
        let lease = locks.acquire_within("job", PATIENCE).await.unwrap();
        // it was renewed at a third of the TTL, or not yet
        assert!(killed.elapsed() > Duration::from_millis(500));
        assert!(lease.token().unwrap().get() > old);
        lease.release().await.unwrap();
    }
}

/// Before the process does anything else, it knows that it holds nothing any more.
#[tokio::test]
async fn a_process_that_was_stopped_finds_its_lease_over() {
    let (_directory, path) = place();
    let mut paused = Process::start(&path, &["hold", "1000"]);
    let old: i64 = paused.line().parse().unwrap();
    paused.ask();
    assert_eq!(paused.line(), "valid=true lost=false protected=running");
    signal::pause(paused.pid());
    let locks = node(&path).await;
    let next = locks.acquire_within("job", PATIENCE).await;
    // it may have been stopped in the midst of a renewal, with the file locked
    signal::resume(paused.pid());
    let next = next.unwrap();
    assert!(next.token().unwrap().get() > old);
    paused.ask();
    assert_eq!(paused.line(), "valid=false lost=true protected=stopped");
    assert!(next.is_valid());
}

/// A process has the whole file locked, for less than the TTL.
#[tokio::test]
async fn a_locked_file_delays_and_loses_nothing() {
    let (_directory, path) = place();
    let locks = node(&path).await;
    let lease = locks.acquire("job").await.unwrap();
    let mut blocker = Process::start(&path, &["block"]);
    assert_eq!(blocker.line(), "locked");
    let other = node(&path).await;
    let waiting = tokio::spawn(async move { other.acquire("another").await.map(drop) });
    // longer than a renewal takes to be due
    sleep(Duration::from_secs(2)).await;
    assert!(!waiting.is_finished());
    lease.check().unwrap();
    // in the midst of its transaction: what it changed does not survive
    blocker.kill();
    waiting.await.unwrap().unwrap();
    eventually(PATIENCE, async || {
        lease.remaining() > Duration::from_secs(2)
    })
    .await;
    lease.release().await.unwrap();
}

/// To open the file again does not free what this process has locked in it. SQLite before 3.51, by
/// whatever program, took the file for unused then, and removed its log under the holder's hands.
#[tokio::test]
async fn the_file_can_be_opened_twice_by_one_process() {
    let (_directory, path) = place();
    let locks = node(&path).await;
    let lease = locks.acquire("job").await.unwrap();
    assert!(has_lock(&path));
    drop(node(&path).await);
    assert!(has_lock(&path));
    Process::start(&path, &["open"]).succeeds();
    assert!(path.with_extension("db-wal").exists());
    let (_, answer) = output(command(&path, &["try"]));
    assert_eq!(answer.trim(), "refused");
    lease.release().await.unwrap();
}

/// Whether the kernel knows of a lock of this process on the file.
fn has_lock(path: &Path) -> bool {
    let inode = format!(":{}", fs::metadata(path).unwrap().ino());
    let pid = std::process::id().to_string();
    let locks = fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(4);
        fields.next() == Some(&pid) && fields.next().is_some_and(|file| file.ends_with(&inode))
    })
}

/// Processes are killed at every moment, and rows are swept meanwhile.
#[tokio::test]
async fn tokens_never_go_back_while_processes_are_killed() {
    let (_directory, path) = place();
    let locks = node(&path).await;
    let mut connection = raw(&path).await;
    let arguments = ["count", "1000000", "12", "500"];
    let start = || Process::start(&path, &arguments);
    let mut processes: Vec<_> = (0..6).map(|_| start()).collect();
    let mut last: HashMap<String, i64> = HashMap::new();
    for _ in 0..60 {
        let pause = rand::rng().random_range(10..120);
        sleep(Duration::from_millis(pause)).await;
        let victim = rand::rng().random_range(0..processes.len());
        processes.swap_remove(victim).kill();
        processes.push(start());
        rise(&mut connection, &mut last).await;
        locks.backend().sweep(Duration::ZERO).await.unwrap();
    }
    drop(processes);
    let check = sqlx::query_scalar("pragma integrity_check");
    let sound: String = check.fetch_one(&mut connection).await.unwrap();
    assert_eq!(sound, "ok");
    let mut grants = 0;
    for key in (0..12).map(|key| format!("key-{key}")) {
        let mut tokens = noted_tokens(&path, &key);
        let noted = tokens.len();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), noted, "a token of {key} was given twice");
        grants += noted;
        let next = locks.acquire_within(key.as_str(), PATIENCE).await.unwrap();
        let highest = tokens.last().copied().unwrap_or_default();
        assert!(next.token().unwrap().get() > highest);
    }
    assert!(grants > 60, "{grants}");
}

/// No row's token is below the one that was seen before, though the row was made anew.
async fn rise(connection: &mut SqliteConnection, last: &mut HashMap<String, i64>) {
    let rows: Vec<(String, i64)> = sqlx::query_as("select name, token from sqlock_leases")
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    for (name, token) in rows {
        let before = last.insert(name.clone(), token).unwrap_or_default();
        assert!(before <= token, "{name}: {token} after {before}");
    }
}
