//! File systems that several machines share.
//!
//! SQLite's own locks, and the shared memory of its log, do not work across machines ([SQLite,
//! "Write-Ahead Logging", section 1](https://www.sqlite.org/wal.html)); and to each machine, the
//! leases of another are those of an earlier boot.

use std::{fs, path::Path};

/// As `/proc/self/mountinfo` names them. The folders that a host shares with its virtual machines
/// are among them.
const BY_NAME: [&str; 34] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "coda",
    "ceph",
    "lustre",
    "gpfs",
    "ocfs2",
    "gfs2",
    "glusterfs",
    "beegfs",
    "panfs",
    "orangefs",
    "virtiofs",
    "vboxsf",
    "vmhgfs",
    "prl_fs",
    "sshfs",
    "s3fs",
    "rclone",
    "gcsfuse",
    "davfs",
    "ceph-fuse",
    "juicefs",
    "mfs",
    "goofys",
    "blobfuse2",
    "mount-s3",
    "vmhgfs-fuse",
    "grpcfuse",
];

/// As `statfs` numbers them ([statfs(2)](https://man7.org/linux/man-pages/man2/statfs.2.html) and
/// the kernel's `magic.h`).
const BY_NUMBER: [(u32, &str); 16] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x0102_1997, "9p"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x1983_0326, "beegfs"),
    (0x786f_4256, "vboxsf"),
    (0xbacb_acbc, "vmhgfs"),
];

/// The kind of the file system on which `path` is, where it is known that machines share it.
pub(super) fn shared_by_machines(path: &Path) -> Option<String> {
    if let Some(kind) = number(path).and_then(named) {
        return Some(kind.to_owned());
    }
    // all of FUSE has one number
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    kind_in(&mounts, path)
}

#[cfg(target_os = "linux")]
fn number(path: &Path) -> Option<u32> {
    let number = i128::from(rustix::fs::statfs(path).ok()?.f_type);
    // of 32 bits, which some machines extend by their sign
    u32::try_from(number & 0xffff_ffff).ok()
}

#[cfg(not(target_os = "linux"))]
fn number(_: &Path) -> Option<u32> {
    None
}

fn named(number: u32) -> Option<&'static str> {
    let mut known = BY_NUMBER.iter();
    known
        .find(|(known, _)| *known == number)
        .map(|(_, kind)| *kind)
}

/// `mountinfo` has a mount a line: the directory is the fifth field, the kind follows a dash.
fn kind_in(mounts: &str, path: &Path) -> Option<String> {
    let covering = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let directory = unescaped(before.split(' ').nth(4)?);
        let kind = after.split(' ').next()?;
        path.starts_with(&directory)
            .then(|| (directory.len(), kind.to_owned()))
    });
    // of equal ones the last mounted is on top
    let (_, kind) = covering.max_by_key(|(length, _)| *length)?;
    let plain = kind.strip_prefix("fuse.").unwrap_or(&kind);
    BY_NAME.contains(&plain).then_some(kind)
}

fn unescaped(directory: &str) -> String {
    let directory = directory.replace("\\040", " ").replace("\\011", "\t");
    directory.replace("\\012", "\n").replace("\\134", "\\")
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
34 22 0:44 / /mnt/twice rw - ext4 /dev/sdd1 rw
35 34 0:45 / /mnt/twice rw - virtiofs folder rw
";

    #[test]
    fn the_mount_that_covers_the_file_decides() {
        let kind = |path: &str| kind_in(MOUNTS, Path::new(path));
        assert_eq!(kind("/var/lib/locks.db"), None);
        assert_eq!(kind("/mnt/share/locks.db").as_deref(), Some("nfs4"));
        assert_eq!(kind("/mnt/share/local/locks.db"), None);
        assert_eq!(kind("/mnt/shared/locks.db"), None);
        let blank = kind("/mnt/with blank/locks.db");
        assert_eq!(blank.as_deref(), Some("fuse.sshfs"));
        assert_eq!(kind("/mnt/fuse/locks.db"), None);
        assert_eq!(kind("/mnt/twice/locks.db").as_deref(), Some("virtiofs"));
    }

    #[test]
    fn numbers_tell_network_file_systems_from_local_ones() {
        assert_eq!(named(0x6969), Some("nfs"));
        assert_eq!(named(0xff53_4d42), Some("cifs"));
        // ext4, tmpfs, overlayfs
        for local in [0xef53, 0x0102_1994, 0x794c_7630] {
            assert_eq!(named(local), None);
        }
        #[cfg(target_os = "linux")]
        assert!(number(Path::new("/proc")) == Some(0x9fa0));
    }
}
