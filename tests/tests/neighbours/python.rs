use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use sqlock::Mode;
use sqlock_tests::TestDatabase;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{Neighbour, support::within};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/neighbours");
/// A start of Python with Django takes a second where nothing else runs.
const START: Duration = Duration::from_secs(30);

/// A process of Python that takes locks by one of its libraries, see `peer.py`.
pub(crate) struct Python {
    process: Child,
    orders: ChildStdin,
    answers: UnboundedReceiver<String>,
}

impl Python {
    pub(crate) async fn start(library: &str, database: &TestDatabase) -> Self {
        let mut process = Command::new("python3")
            .arg(Path::new(DIRECTORY).join("peer.py"))
            .args([library, &database.url()])
            .env("PYTHONPATH", packages())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("no python3 on the PATH: run ./scripts/setup");
        let orders = process.stdin.take().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (sender, answers) = unbounded_channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut python = Self {
            process,
            orders,
            answers,
        };
        let ready = within(START, "the start of python", python.answer()).await;
        assert_eq!(ready, "ready");
        python
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("python takes orders");
    }

    async fn answer(&mut self) -> String {
        let answer = self.answers.recv().await;
        answer.expect("python ended; what it said is above")
    }
}

#[async_trait]
impl Neighbour for Python {
    async fn try_acquire(&mut self, name: &str, mode: Mode) -> bool {
        self.order(&format!("try {} {name}", word(mode)));
        let answer = self.answer().await;
        assert!(
            ["granted", "refused"].contains(&answer.as_str()),
            "{answer}"
        );
        answer == "granted"
    }

    async fn begin_to_wait(&mut self, name: &str, mode: Mode) {
        self.order(&format!("wait {} {name}", word(mode)));
    }

    async fn granted(&mut self) {
        assert_eq!(self.answer().await, "granted");
    }

    async fn release(&mut self) {
        self.order("release");
        assert_eq!(self.answer().await, "released");
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Shared => "shared",
        _ => "exclusive",
    }
}

/// What `scripts/setup` installed, beside the directory of this build.
fn packages() -> PathBuf {
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../python");
    assert!(
        packages.join("installed").is_file(),
        "python's packages are not in {}: run ./scripts/setup",
        packages.display()
    );
    packages
}
