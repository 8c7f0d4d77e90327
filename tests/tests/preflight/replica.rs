//! A streaming standby of a test's server.

use std::{
    fs::{self, DirBuilder},
    net::TcpListener,
    os::unix::{
        fs::{DirBuilderExt, MetadataExt, chown},
        process::CommandExt,
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use sqlock_tests::{PostgresServer, eventually};
use sqlx::{Connection, PgConnection};

use crate::support::{PATIENCE, ask};

pub(crate) struct Replica {
    child: Child,
    directory: PathBuf,
    port: u16,
}

impl Replica {
    /// By the primary's own binaries, as the primary's own account.
    pub(crate) async fn of(primary: &PostgresServer) -> Self {
        let mut admin = primary.connect().await;
        let binaries: String = ask(
            &mut admin,
            "select setting from pg_config where name = 'BINDIR'",
        )
        .await;
        let data: String = ask(&mut admin, "show data_directory").await;
        let primary_port: String = ask(&mut admin, "show port").await;
        let owner = fs::metadata(data).unwrap();
        let as_owner = |program: &str| {
            let mut command = Command::new(format!("{binaries}/{program}"));
            command
                .current_dir("/")
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if rustix::process::geteuid().is_root() {
                command.uid(owner.uid()).gid(owner.gid());
            }
            command
        };
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let directory = std::env::temp_dir().join(format!("sqlock-replica-{port}"));
        // a server refuses a directory that others may read
        DirBuilder::new().mode(0o700).create(&directory).unwrap();
        chown(&directory, Some(owner.uid()), Some(owner.gid())).unwrap();
        let copied = as_owner("pg_basebackup")
            .args([
                "--host=127.0.0.1",
                "--username=postgres",
                "--port",
                &primary_port,
            ])
            .args(["--write-recovery-conf", "--checkpoint=fast", "--pgdata"])
            .arg(&directory)
            .status();
        assert!(copied.unwrap().success(), "pg_basebackup failed");
        let child = as_owner("postgres")
            .args([
                "-c",
                "unix_socket_directories=",
                "-p",
                &port.to_string(),
                "-D",
            ])
            .arg(&directory)
            .spawn()
            .unwrap();
        let replica = Self {
            child,
            directory,
            port,
        };
        eventually(PATIENCE, async || {
            PgConnection::connect(&replica.url()).await.is_ok()
        })
        .await;
        replica
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
