use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio},
    time::Duration,
};

use sqlock::{Locks, SqliteBackend};
use sqlock_tests::signal;
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use crate::harness::options;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A place for a file, as long as the first of the two lives.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("locks.db");
    (directory, path)
}

pub(crate) async fn node(path: &Path) -> Locks<SqliteBackend> {
    Locks::new(options().open(path).await.expect("the file opens"))
}

pub(crate) async fn raw(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(Duration::from_secs(10));
    SqliteConnection::connect_with(&options)
        .await
        .expect("the file opens")
}

pub(crate) async fn run(connection: &mut SqliteConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.expect(sql);
}

/// `share-file` of `tests/src/bin` on this file.
pub(crate) fn command(path: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_share-file"));
    command.arg(path).args(arguments);
    command
}

/// What it says until it ends.
pub(crate) fn output(mut command: Command) -> (Output, String) {
    let output = command.output().expect("a process");
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output, said)
}

/// A process that ends with this value.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(path: &Path, arguments: &[&str]) -> Self {
        let mut child = command(path, arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self {
            child,
            input,
            output,
        }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    pub(crate) fn ask(&mut self) {
        writeln!(self.input).expect("it reads");
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    pub(crate) fn kill(mut self) {
        signal::kill(self.pid());
        self.child.wait().expect("it ends");
    }

    pub(crate) fn succeeds(mut self) {
        let mut said = String::new();
        self.output.read_to_string(&mut said).expect("its output");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
