//! One thread that lives as long as the process, and the work that must be done on such a thread.
//!
//! The kernel sends a child its parent-death signal when the *thread* that spawned it ends, and a
//! test's thread ends with its test.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};
use std::thread;

use rustix::process::Signal;

type Job = Box<dyn FnOnce() + Send>;

/// Spawns `command` as a child of the thread that lives as long as this process.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    static KEEPER: OnceLock<Sender<Job>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || queue.into_iter().for_each(|job| job()))
            .expect("a thread can be spawned");
        jobs
    });
    let (reply, answer) = mpsc::channel();
    let job: Job = Box::new(move || {
        // Nobody is left to hear of it only where the caller panicked.
        let _ = reply.send(command.spawn());
    });
    keeper.send(job).expect("the keeper never ends");
    answer.recv().expect("the keeper answers")
}

/// How a server ends that nobody needs any more.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// SIGQUIT, at which PostgreSQL shuts down at once, and frees its shared memory.
    Quit,
    /// SIGKILL, for a server that leaves nothing behind, and may have been born ignoring SIGQUIT.
    Kill,
}

impl End {
    pub(crate) fn signal(self) -> Signal {
        match self {
            Self::Quit => Signal::QUIT,
            Self::Kill => Signal::KILL,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Quit => "QUIT",
            Self::Kill => "KILL",
        }
    }
}

/// A command for [`spawn`] that ends when this process dies, however it dies.
///
/// A change of account clears the parent-death signal, so it is set by `setpriv`, which runs under
/// the other account already. Where there is no `setpriv`, the next test process sweeps.
pub(crate) fn dying_with_this_process(program: &Path, end: End) -> Command {
    let has_setpriv = Command::new("setpriv")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_setpriv {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", end.name()]).arg(program);
    command
}
