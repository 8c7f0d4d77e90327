//! A database, a directory, and the command in it.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use sqlock_tests::{AdvisoryLock, TestDatabase, eventually, signal::is_alive};
use tempfile::TempDir;
use tokio::{
    process::{Child, ChildStdin, Command},
    time::timeout,
};

/// Nothing that comes about by itself takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    directory: TempDir,
    count: AtomicU32,
}

/// A command under way. Dropped, it is killed, which is the end of all that it started.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::on(TestDatabase::create().await)
    }

    pub(crate) fn on(database: TestDatabase) -> Self {
        Self {
            database,
            directory: tempfile::tempdir().unwrap(),
            count: AtomicU32::new(0),
        }
    }

    /// `sqlock` with these arguments, the database's URL and the directory.
    pub(crate) fn sqlock(&self, arguments: &[&str]) -> Command {
        // whoever runs the tests may ignore signals, and that is inherited
        let mut command = Command::new("env");
        command
            .args(["--default-signal", env!("CARGO_BIN_EXE_sqlock")])
            .args(arguments)
            .current_dir(self.directory.path())
            .env("DATABASE_URL", self.database.url())
            .env_remove("SQLOCK_LOG")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// `sqlock run … -- sh -c script`, under way.
    pub(crate) fn run(&self, arguments: &[&str], script: &str) -> Running {
        let rest: &[&str] = &["--", "sh", "-c", script];
        self.start(self.sqlock(&[&["run"], arguments, rest].concat()))
    }

    pub(crate) fn start(&self, mut command: Command) -> Running {
        // files, since what outlives the command would keep a pipe open
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let stdout = self.path(&format!("stdout-{number}"));
        let stderr = self.path(&format!("stderr-{number}"));
        let child = command
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        Running {
            child,
            stdout,
            stderr,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Until a script has made the file.
    pub(crate) async fn until(&self, name: &str) {
        self.until_lines(name, 0).await;
    }

    pub(crate) async fn until_lines(&self, name: &str, count: usize) {
        eventually(PATIENCE, async || {
            self.has(name) && self.lines(name).len() >= count
        })
        .await;
    }

    /// The number that a script wrote: `echo $! >name`.
    pub(crate) async fn pid(&self, name: &str) -> i32 {
        self.until_lines(name, 1).await;
        self.lines(name)[0].parse().unwrap()
    }

    /// The locks that are held, those of waiting aside.
    pub(crate) async fn held(&self) -> Vec<AdvisoryLock> {
        let mut locks = self.database.advisory_locks().await;
        locks.retain(|lock| lock.granted && lock.objsubid == 1);
        locks
    }

    pub(crate) async fn until_free(&self) {
        self.database.wait_until_no_advisory_locks(PATIENCE).await;
    }

    /// Until so many sessions of `sqlock run` are connected.
    pub(crate) async fn until_sessions(&self, count: usize) {
        eventually(PATIENCE, async || {
            let backends = self.database.backends().await;
            let ours = backends
                .iter()
                .filter(|backend| backend.application_name.starts_with("sqlock run"));
            ours.count() == count
        })
        .await;
    }
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id().expect("it runs")).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
    }

    pub(crate) fn has_ended(&self) -> bool {
        // its parent, this process, has not waited for it
        !is_alive(self.pid())
    }

    pub(crate) fn take_stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("standard input is a pipe")
    }

    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    pub(crate) async fn ended(mut self) -> Ended {
        let status = timeout(PATIENCE, self.child.wait()).await;
        let Ok(status) = status else {
            panic!("sqlock does not end; it said: {}", self.stderr());
        };
        Ended {
            code: status.unwrap().code(),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:?}");
    }
}

pub(crate) async fn until_dead(pid: i32) {
    eventually(PATIENCE, async || !is_alive(pid)).await;
}

/// The processes whose parent is `pid`.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |child: &i32| {
        fs::read_to_string(format!("/proc/{child}/stat"))
            .ok()
            .and_then(|stat| {
                let fields = stat.rsplit_once(')')?.1;
                fields.split_whitespace().nth(1)?.parse().ok()
            })
            .is_some_and(|parent: i32| parent == pid)
    };
    pids.filter(is_child).collect()
}
