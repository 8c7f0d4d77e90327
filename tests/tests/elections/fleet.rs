use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use sqlock_tests::signal;

/// Nothing that comes about by itself takes longer, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

/// Processes that stand for one election.
pub(crate) struct Fleet {
    backend: &'static str,
    url: String,
    ttl: Duration,
    notes: PathBuf,
    nodes: Vec<Node>,
    began: (Sender<u32>, Receiver<u32>),
}

struct Node {
    child: Child,
    input: ChildStdin,
}

impl Fleet {
    pub(crate) fn start(backend: &'static str, url: String, ttl: Duration, notes: PathBuf) -> Self {
        let mut fleet = Self {
            backend,
            url,
            ttl,
            notes,
            nodes: Vec::new(),
            began: channel(),
        };
        for _ in 0..3 {
            fleet.join();
        }
        fleet
    }

    fn join(&mut self) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stand-for-election"))
            .args([self.backend, &self.url, &self.ttl.as_millis().to_string()])
            .arg(&self.notes)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (process, began) = (child.id(), self.began.0.clone());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                assert!(line.starts_with("leading "), "{line}");
                began.send(process).ok();
            }
        });
        self.nodes.push(Node { child, input });
    }

    /// The next process that begins a term.
    pub(crate) fn next_leader(&self) -> u32 {
        let next = self.began.1.recv_timeout(PATIENCE);
        next.expect("somebody leads in the end")
    }

    /// The process that began a term last.
    pub(crate) fn latest(&self, leader: u32) -> u32 {
        self.began.1.try_iter().last().unwrap_or(leader)
    }

    /// Whether anybody begins a term within this time.
    pub(crate) fn begins_within(&self, limit: Duration) -> Option<u32> {
        self.began.1.recv_timeout(limit).ok()
    }

    /// Kills it, and starts another.
    pub(crate) fn kill(&mut self, process: u32) {
        let mut node = self.take(process);
        signal::kill(pid(process));
        node.child.wait().expect("it ends");
        self.join();
    }

    /// Has it end by itself, and starts another.
    pub(crate) fn stop(&mut self, process: u32) {
        let mut node = self.take(process);
        writeln!(node.input, "stop").expect("it reads");
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = node.child.try_wait().expect("a child") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not stop");
            #[allow(clippy::disallowed_methods, reason = "no runtime here")]
            thread::sleep(Duration::from_millis(1));
        };
        assert!(status.success(), "{status}");
        self.join();
    }

    fn take(&mut self, process: u32) -> Node {
        let at = self
            .nodes
            .iter()
            .position(|node| node.child.id() == process);
        self.nodes.remove(at.expect("one of the fleet"))
    }
}

pub(crate) fn pid(process: u32) -> i32 {
    i32::try_from(process).expect("a pid")
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            node.child.kill().ok();
            node.child.wait().ok();
        }
    }
}
