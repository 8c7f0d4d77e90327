//! Where a file of leases may be.

use std::{fs, io, path::Path};

use sqlock_core::{Error, Result};

/// SQLite's own locks, and the shared memory of its WAL, do not work across hosts ([SQLite,
/// "Write-Ahead Logging", section 1](https://www.sqlite.org/wal.html)).
const OF_NETWORKS: [&str; 14] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "lustre",
    "gpfs",
    "ocfs2",
    "gfs2",
    "glusterfs",
    "beegfs",
];

/// Creates the file, for its owner alone, and its directory; refuses what cannot be safe.
pub(super) fn prepare(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() || path == Path::new(":memory:") {
        return Err(refused(
            "it must be the path of a file; for locks in one process use the memory backend",
        ));
    }
    let failed =
        |error: io::Error| refused(&format!("{} cannot be opened: {error}", path.display()));
    if let Some(directory) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    create(path).map_err(failed)?;
    let real = path.canonicalize().map_err(failed)?;
    match network_file_system(&real) {
        None => Ok(()),
        Some(kind) => Err(refused(&format!(
            "{} is on a network file system ({kind}), where hosts do not see each other's locks; \
             use a local file for one host, or a server for several",
            path.display()
        ))),
    }
}

fn create(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn refused(reason: &str) -> Error {
    Error::InvalidOption {
        option: "path",
        reason: reason.to_owned(),
    }
}

/// The kind of network file system on which `path` is, where it can be told.
fn network_file_system(path: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    kind_in(&mounts, path)
}

/// `mountinfo` has a mount a line: the directory is the fifth field, the kind follows a dash.
fn kind_in(mounts: &str, path: &Path) -> Option<String> {
    let covering = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let directory = before.split(' ').nth(4)?.replace("\\040", " ");
        let kind = after.split(' ').next()?;
        path.starts_with(&directory)
            .then(|| (directory.len(), kind.to_owned()))
    });
    // of equal ones the last mounted is on top
    let (_, kind) = covering.max_by_key(|(length, _)| *length)?;
    let plain = kind.strip_prefix("fuse.").unwrap_or(&kind);
    let is_remote_fuse = ["sshfs", "s3fs", "rclone", "gcsfuse", "davfs"].contains(&plain);
    (OF_NETWORKS.contains(&plain) || is_remote_fuse).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/share rw shared:1 - nfs4 server:/x rw
31 30 0:41 / /mnt/share/local rw - ext4 /dev/sdb1 rw
32 22 0:42 / /mnt/with\\040blank rw - fuse.sshfs host: rw
33 22 0:43 / /mnt/fuse rw - fuse.ntfs-3g /dev/sdc1 rw
";

    #[test]
    fn the_mount_that_covers_the_file_decides() {
        let kind = |path: &str| kind_in(MOUNTS, Path::new(path));
        assert_eq!(kind("/var/lib/locks.db"), None);
        assert_eq!(kind("/mnt/share/locks.db").as_deref(), Some("nfs4"));
        assert_eq!(kind("/mnt/share/local/locks.db"), None);
        assert_eq!(kind("/mnt/shared/locks.db"), None);
        assert_eq!(
            kind("/mnt/with blank/locks.db").as_deref(),
            Some("fuse.sshfs")
        );
        assert_eq!(kind("/mnt/fuse/locks.db"), None);
    }

    #[test]
    fn memory_and_nothing_are_no_files() {
        assert!(prepare(Path::new(":memory:")).is_err());
        assert!(prepare(Path::new("")).is_err());
        assert!(prepare(Path::new("/proc/no/such/place")).is_err());
    }
}
