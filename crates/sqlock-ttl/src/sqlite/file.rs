//! The file itself: made for its owner alone, and told from another that takes its place.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use sqlock_core::{Error, Result};

use super::network::shared_by_machines;

/// A file of leases, by its real path: no change of the working directory leads elsewhere, and
/// SQLite takes it for no URI.
#[derive(Debug, Clone)]
pub(crate) struct LeaseFile {
    path: PathBuf,
    identity: Identity,
}

impl LeaseFile {
    /// Creates the file where it is missing, and its directory; refuses what cannot be safe.
    pub(crate) fn prepare(path: &Path) -> Result<Self> {
        check_kind(path)?;
        let failed =
            |error: io::Error| refused(&format!("{} cannot be opened: {error}", path.display()));
        let path = std::path::absolute(path).map_err(failed)?;
        // before anything is made there
        if let Some(existing) = path.ancestors().find(|place| place.exists()) {
            check_place(&existing.canonicalize().map_err(failed)?)?;
        }
        if let Some(directory) = path.parent() {
            create_directory(directory).map_err(failed)?;
        }
        create(&path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        check_place(&path)?;
        if !path.is_file() {
            return Err(refused(&format!("{} is not a file", path.display())));
        }
        let identity = identity(&path).map_err(failed)?;
        Ok(Self { path, identity })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still leads to this file. SQLite does not notice when it was removed: it
    /// would go on with a file that nobody else can open.
    pub(super) fn is_in_place(&self) -> bool {
        identity(&self.path).is_ok_and(|found| found == self.identity)
    }
}

fn check_kind(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() || path == Path::new(":memory:") {
        return Err(refused(
            "it must be the path of a file; for locks in one process use the memory backend",
        ));
    }
    let text = path.to_string_lossy();
    if text.starts_with("file:") || text.starts_with("sqlite:") {
        return Err(refused("it must be the path of a file, and not a URL"));
    }
    Ok(())
}

fn check_place(path: &Path) -> Result<()> {
    match shared_by_machines(path) {
        None => Ok(()),
        Some(kind) => Err(refused(&format!(
            "{} is on a file system that machines share ({kind}), and they do not see each \
             other's locks there; use a local file for one host, or a server for several",
            path.display()
        ))),
    }
}

fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// A file that is there is not opened, as closing it would free the locks that SQLite has on it
/// for this process ([SQLite, "How To Corrupt", 2.2](https://www.sqlite.org/howtocorrupt.html)).
fn create(path: &Path) -> io::Result<()> {
    // one at a time: nobody else in this process has it open until it is closed here
    static CREATION: Mutex<()> = Mutex::new(());
    let _creation = CREATION.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.map(drop),
    }
}

fn refused(reason: &str) -> Error {
    Error::InvalidOption {
        option: "path",
        reason: reason.to_owned(),
    }
}

/// Device and inode. An inode is not used again while SQLite has it open.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Elsewhere a file that is open cannot be removed.
#[cfg(not(unix))]
type Identity = ();

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_path_of_a_file_is_refused() {
        for path in [
            "",
            ":memory:",
            "file:locks.db",
            "sqlite://locks.db",
            "/",
            "/proc/no/such/place",
        ] {
            let error = LeaseFile::prepare(Path::new(path)).unwrap_err();
            let is_typed = matches!(error, Error::InvalidOption { option: "path", .. });
            assert!(is_typed, "{path}: {error:?}");
        }
    }

    #[test]
    fn a_file_that_takes_the_place_of_another_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new").join("locks.db");
        let file = LeaseFile::prepare(&path).unwrap();
        assert!(file.is_in_place());
        fs::write(path.with_extension("other"), "").unwrap();
        fs::rename(path.with_extension("other"), &path).unwrap();
        assert!(!file.is_in_place());
        fs::remove_file(&path).unwrap();
        assert!(!file.is_in_place());
    }
}
