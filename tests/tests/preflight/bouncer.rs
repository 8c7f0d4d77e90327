//! A PgBouncer in front of a test's database.

use std::{
    fmt::Write as _,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use sqlock_tests::{TestDatabase, eventually};
use tokio::net::TcpStream;

use crate::support::PATIENCE;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {
    Session,
    Transaction,
    Statement,
}

pub(crate) struct Bouncer {
    child: Child,
    directory: PathBuf,
    port: u16,
    database: String,
}

impl Bouncer {
    pub(crate) async fn start(database: &TestDatabase, mode: Mode, settings: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let directory = std::env::temp_dir().join(format!("sqlock-preflight-{port}"));
        fs::create_dir(&directory).unwrap();
        let server = database.url();
        let address = server.split(['@', '/', ':']).collect::<Vec<_>>();
        let (host, server_port) = (address[4], address[5]);
        let name = database.name();
        let mode = format!("{mode:?}").to_lowercase();
        let mut text = format!(
            "[databases]\n{name} = host={host} port={server_port} dbname={name}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = trust\n\
             auth_file = users\nunix_socket_dir =\nmax_client_conn = 1000\npool_mode = {mode}\n"
        );
        for setting in settings {
            writeln!(text, "{setting}").unwrap();
        }
        fs::write(directory.join("pgbouncer.ini"), text).unwrap();
        fs::write(directory.join("users"), "\"postgres\" \"\"\n").unwrap();
        let child = spawn(&directory);
        eventually(PATIENCE, async || {
            TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
        Self {
            child,
            directory,
            port,
            database: name.to_owned(),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "postgres://postgres@127.0.0.1:{}/{}",
            self.port, self.database
        )
    }
}

/// It does not run as root.
fn spawn(directory: &Path) -> Child {
    let mut command = Command::new("pgbouncer");
    if rustix::process::geteuid().is_root() {
        command.arg("--user=nobody");
    }
    command
        .arg("pgbouncer.ini")
        .current_dir(directory)
        .stderr(Stdio::null())
        .spawn()
        .expect("pgbouncer is installed: apt-get install pgbouncer")
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
