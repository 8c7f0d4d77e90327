use anyhow::Result;
use rustix::process::Signal;

use super::local::Local;
use super::{Kind, PostgresServer, Role, blocking};
use crate::signal;

/// How a server is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ends all sessions, and shuts down properly.
    Fast,
    /// Ends all processes at once; the next start recovers.
    Immediate,
}

/// What is done to a private server. Each panics for a shared one, and for one in a container.
impl PostgresServer {
    /// Stops a private server.
    pub async fn stop(&self, stop: Stop) {
        self.act(move |local| local.stop(stop)).await;
    }

    /// Starts a private server that was stopped or killed, on its data and port.
    pub async fn start_again(&self) {
        self.act(Local::start_again).await;
    }

    /// Starts a private server that was stopped or killed on its data and another port, as if
    /// another host had taken over its disk. From then on its URLs are others.
    pub async fn start_elsewhere(&self) {
        self.act(Local::start_elsewhere).await;
    }

    /// Stops a private server and starts it again.
    pub async fn restart(&self, stop: Stop) {
        self.stop(stop).await;
        self.start_again().await;
    }

    /// Kills every process of a private server with `kill -9`.
    pub async fn kill(&self) {
        self.act(Local::kill).await;
    }

    /// Pauses every process of a private server (SIGSTOP): as if its machine hung. Its port still
    /// takes connections, and nobody answers.
    pub fn pause(&self) {
        // The postmaster first, so that no backend is born meanwhile.
        signal::send_all(&self.processes(), Signal::STOP);
    }

    /// Lets every process of a private server go on (SIGCONT).
    pub fn resume(&self) {
        signal::send_all(&self.processes(), Signal::CONT);
    }

    /// Pauses one backend of a private server, by its `pg_backend_pid()`.
    pub fn pause_backend(&self, pid: i32) {
        signal::pause(self.backend(pid));
    }

    /// Lets one backend of a private server go on.
    pub fn resume_backend(&self, pid: i32) {
        signal::resume(self.backend(pid));
    }

    /// Kills one backend of a private server with `kill -9`. The server then ends all others and
    /// recovers.
    pub fn kill_backend(&self, pid: i32) {
        signal::kill(self.backend(pid));
    }

    /// The pids of a private server's processes, the postmaster first; empty where it does not run.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        self.local().processes()
    }

    pub(super) fn local(&self) -> &Local {
        assert!(
            self.role == Role::Private,
            "faults and standbys are for private servers, which PostgresServer::start makes; \
             this one is shared",
        );
        match &*self.kind {
            Kind::Local(local) => local,
            Kind::Url(_) | Kind::Container(_) => panic!(
                "only a server of local binaries can be stopped, paused or killed, or have a standby; \
                 apt-get install postgresql brings them"
            ),
        }
    }

    fn backend(&self, pid: i32) -> i32 {
        assert!(
            self.processes().contains(&pid),
            "{pid} is no process of this server"
        );
        pid
    }

    async fn act(&self, action: impl FnOnce(&Local) -> Result<()> + Send + 'static) {
        // Refused here rather than on the thread, so that it is the test that panics.
        self.local();
        let server = self.clone();
        blocking(move || action(server.local())).await;
    }
}
