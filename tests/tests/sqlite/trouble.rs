//! What can be wrong with a file, a disk, a directory.

use std::{
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::Command,
};

use sqlock::{Error, LossCause, SqliteBackend, sqlite::SqliteOptions};
use tokio::time::timeout;

use crate::tools::{PATIENCE, command, node, output, place, raw, run};

/// What the file cannot be used for, in all words.
async fn complaint(path: &Path) -> String {
    let error = SqliteBackend::open(path).await.unwrap_err();
    assert!(!error.is_retryable(), "{error:?}");
    format!("{error:?}")
}

#[tokio::test]
async fn what_is_no_database_is_told() {
    let (_directory, path) = place();
    let text = "this is a text, and quite a long one, so that it can be no database";
    fs::write(&path, text).unwrap();
    let complaint = complaint(&path).await;
    assert!(
        complaint.contains("the file is something else"),
        "{complaint}"
    );
    assert!(complaint.contains("not a database"), "{complaint}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_damaged_file_is_told() {
    let (_directory, path) = place();
    let locks = node(&path).await;
    drop(locks.acquire("job").await.unwrap());
    locks.shutdown().await.unwrap();
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(100)).unwrap();
    file.write_all(&[0xff; 12_000]).unwrap();
    drop(file);
    let complaint = complaint(&path).await;
    assert!(complaint.contains("the file is damaged"), "{complaint}");
}

#[tokio::test]
async fn a_table_of_another_shape_is_told_by_its_column() {
    for (alter, complaint_about) in [
        (
            "alter table sqlock_leases drop column payload",
            "no column payload (TEXT)",
        ),
        (
            "drop table sqlock_leases; create table sqlock_leases (name blob primary key)",
            "column name is BLOB and must be TEXT",
        ),
        (
            "alter table sqlock_leases_meta rename column floor to ceiling",
            "no column floor (INTEGER)",
        ),
        ("update sqlock_leases_meta set clock = 'sundial'", "sundial"),
    ] {
        let (_directory, path) = place();
        drop(node(&path).await);
        run(&mut raw(&path).await, alter).await;
        let complaint = complaint(&path).await;
        assert!(complaint.contains(complaint_about), "{complaint}");
    }
}

/// A table beside others, and one that somebody made by the shipped migration.
#[tokio::test]
async fn tables_may_be_named_and_made_by_hand() {
    let (_directory, path) = place();
    fs::write(&path, "").unwrap();
    let migration = include_str!("../../../crates/sqlock-ttl/migrations/sqlite/0001_leases.sql");
    run(&mut raw(&path).await, migration).await;
    let locks = node(&path).await;
    let lease = locks.acquire("job").await.unwrap();
    let named = SqliteOptions::new().table("Robert'); drop table");
    let named = sqlock::Locks::new(named.open(&path).await.unwrap());
    assert!(named.try_acquire("job").await.unwrap().is_some());
    assert!(
        node(&path)
            .await
            .try_acquire("job")
            .await
            .unwrap()
            .is_none()
    );
    lease.release().await.unwrap();
    let refused = SqliteOptions::new().table("a\"b").open(&path).await;
    assert!(matches!(
        refused,
        Err(Error::InvalidOption {
            option: "table",
            ..
        })
    ));
}

/// Where the file goes by the wall clock, everybody does.
#[tokio::test]
async fn the_file_says_which_clock_it_goes_by() {
    let (_directory, path) = place();
    drop(node(&path).await);
    let wall = "update sqlock_leases_meta set clock = 'wall'";
    run(&mut raw(&path).await, wall).await;
    let (one, other) = (node(&path).await, node(&path).await);
    let lease = one.acquire("job").await.unwrap();
    assert!(other.try_acquire("job").await.unwrap().is_none());
    let boot = sqlx::query_scalar("select boot from sqlock_leases");
    let boot: String = boot.fetch_one(&mut raw(&path).await).await.unwrap();
    assert_eq!(boot, "wall");
    lease.release().await.unwrap();
}

/// Others have another file by now, where the same lock is free.
#[tokio::test]
async fn a_file_that_was_removed_takes_its_leases_with_it() {
    let (_directory, path) = place();
    let locks = node(&path).await;
    let lease = locks.acquire("job").await.unwrap();
    fs::remove_file(&path).unwrap();
    let lost = timeout(PATIENCE, lease.lost()).await.unwrap();
    let is_removed = matches!(
        &lost,
        Error::Lost {
            cause: LossCause::Removed,
            ..
        }
    );
    assert!(is_removed, "{lost:?}");
    let error = locks.try_acquire("job").await.unwrap_err();
    assert!(
        format!("{error:?}").contains("was removed or replaced"),
        "{error:?}"
    );
    assert!(!error.is_retryable());
    fs::remove_file(path.with_extension("db-wal")).ok();
    fs::remove_file(path.with_extension("db-shm")).ok();
    assert!(
        node(&path)
            .await
            .try_acquire("job")
            .await
            .unwrap()
            .is_some()
    );
}

/// As another account than root, which may write anywhere.
fn as_nobody(mut command: Command) -> Command {
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    command
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_told() {
    let (directory, path) = place();
    let protect = |mode| fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode));
    protect(0o555).unwrap();
    let (ended, said) = output(as_nobody(command(&path, &["open"])));
    assert!(!ended.status.success());
    assert!(said.contains("Permission denied"), "{said}");

    protect(0o755).unwrap();
    let locks = node(&path).await;
    locks.shutdown().await.unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    protect(0o555).unwrap();
    let (ended, said) = output(as_nobody(command(&path, &["try"])));
    protect(0o755).unwrap();
    assert!(!ended.status.success());
    assert!(
        said.contains("must be") && said.contains("writable"),
        "{said}"
    );
}

/// A disk on which nothing more fits is an error, and what was written before is as it was.
#[tokio::test]
async fn a_file_that_cannot_grow_is_told() {
    let (_directory, path) = place();
    let locks = node(&path).await;
    let lease = locks.acquire("key-0").await.unwrap();
    let before = lease.token().unwrap();
    lease.release().await.unwrap();
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_share-file"))
        .arg(&path)
        .args(["count", "100000", "1", "10000"]);
    let (ended, said) = output(limited);
    assert!(!ended.status.success());
    assert!(said.contains("failed to read or write"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let next = locks.acquire_within("key-0", PATIENCE).await.unwrap();
    assert!(next.token().unwrap() > before);
}
