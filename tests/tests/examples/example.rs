use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use sqlock_tests::{TestDatabase, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::support::{PATIENCE, within};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/sqlock/examples");
/// The longest that an example waits by itself, and more.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// An example that runs. It is killed when this is dropped.
pub(crate) struct Example {
    name: &'static str,
    process: Child,
    lines: UnboundedReceiver<String>,
}

impl Example {
    pub(crate) fn start(name: &'static str, database: &TestDatabase) -> Self {
        let mut process = Command::new(program(name))
            .env("DATABASE_URL", database.url())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the example starts");
        let said = BufReader::new(process.stderr.take().unwrap()).lines();
        let (sender, lines) = unbounded_channel();
        thread::spawn(move || {
            for line in said.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self {
            name,
            process,
            lines,
        }
    }

    /// The next line that it prints.
    pub(crate) async fn line(&mut self) -> String {
        let line = within(TIME_LIMIT, self.name, self.lines.recv()).await;
        line.unwrap_or_else(|| panic!("{} ended", self.name))
    }

    /// What it prints until it ends. It ends well.
    pub(crate) async fn finish(mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(line) = within(TIME_LIMIT, self.name, self.lines.recv()).await {
            said.push(line);
        }
        let mut status = None;
        sqlock_tests::eventually(PATIENCE, async || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        })
        .await;
        assert!(status.unwrap().success(), "{}: {said:?}", self.name);
        said
    }

    /// As the system does that wants it to end.
    pub(crate) fn terminate(&self) {
        signal::terminate(self.process.id().cast_signed());
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Cargo builds examples with the tests of their package, and puts them beside this program.
fn program(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let program = tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples")
        .join(name);
    let source = Path::new(SOURCES).join(name).with_extension("rs");
    let time = |path: &Path| path.metadata().and_then(|data| data.modified());
    let is_built = time(&program).is_ok_and(|built| built >= time(&source).unwrap());
    assert!(
        is_built,
        "{} is missing, or older than its source: \
         cargo build -p sqlock --examples --all-features",
        program.display()
    );
    program
}
