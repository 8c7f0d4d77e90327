use std::env;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use rustix::process::Signal;

use crate::signal;

const OWNER: &str = "owner";
const DATA: &str = "data";
const GRACE: Duration = Duration::from_secs(5);

/// The directory that all servers of this user share, locked against other test processes.
pub(crate) struct Scratch {
    root: PathBuf,
    _lock: File,
}

impl Scratch {
    pub(crate) fn lock() -> Result<Self> {
        let uid = rustix::process::geteuid().as_raw();
        // In the system's own directory, since the server's account must be able to enter it.
        let root = env::temp_dir().join(format!("sqlock-tests-{uid}"));
        let root = create(&root).with_context(|| format!("cannot make {}", root.display()))?;
        let owner = fs::metadata(&root)?.uid();
        ensure!(owner == uid, "{} belongs to somebody else", root.display());
        let lock = File::create(root.join("lock"))?;
        lock.lock()
            .context("cannot lock the directory of test servers")?;
        Ok(Self { root, _lock: lock })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A new directory for one server; it is swept by others once this process is gone.
    pub(crate) fn server_directory(&self) -> Result<ServerDirectory> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = self.path(&format!("server-{}-{count}", process::id()));
        // A namesake can only be left over from a dead process of the same pid.
        let _ = fs::remove_dir_all(&path);
        create(&path)?;
        let owner = File::create(path.join(OWNER))?;
        owner
            .lock()
            .context("cannot lock a new server's directory")?;
        Ok(ServerDirectory {
            path,
            _owner: owner,
        })
    }

    /// Removes what dead test processes have left behind.
    pub(crate) fn sweep(&self) -> Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            let is_server = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("server-"));
            if is_server && !has_owner(&path) {
                end_processes(&path.join(DATA))?;
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// One server's directory: its data, its log and its socket. Removed when dropped.
#[derive(Debug)]
pub(crate) struct ServerDirectory {
    path: PathBuf,
    _owner: File,
}

impl ServerDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }
}

impl Drop for ServerDirectory {
    fn drop(&mut self) {
        // What stays is swept by the next test process.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn create(path: &Path) -> Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)?;
    // The form in which a process's working directory shows.
    Ok(fs::canonicalize(path)?)
}

/// The directory of a living process that is just removing it can be gone first.
fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// A lock says it surer than a pid, which may be another process's by now.
fn has_owner(directory: &Path) -> bool {
    let Ok(owner) = File::open(directory.join(OWNER)) else {
        return false;
    };
    matches!(owner.try_lock(), Err(TryLockError::WouldBlock))
}

/// Ends the server of a dead process: by an immediate shutdown, which frees its shared memory, and
/// by force where that takes too long.
#[allow(
    clippy::disallowed_methods,
    reason = "a plain thread, before there is a runtime to block"
)]
fn end_processes(data: &Path) -> Result<()> {
    let pids = signal::processes_in(data);
    signal::send_all(&pids, Signal::QUIT);
    // A paused process hears of it only once it goes on.
    signal::send_all(&pids, Signal::CONT);
    let deadline = Instant::now() + GRACE;
    while pids.iter().any(|pid| signal::is_alive(*pid)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    signal::kill_all_in(data, GRACE)
        .map_err(|pids| anyhow!("processes {pids:?} of a dead test do not end"))
}
