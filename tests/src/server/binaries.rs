use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A directory with PostgreSQL's `initdb` and `postgres`.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    /// `initdb` on the `PATH`, in `pg_config --bindir`, or the newest under `/usr/lib/postgresql`.
    pub(super) fn locate() -> Option<Self> {
        on_path()
            .or_else(by_pg_config)
            .or_else(newest_of_debian)
            .map(|directory| Self { directory })
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.directory.join("initdb")
    }

    pub(super) fn postgres(&self) -> PathBuf {
        self.directory.join("postgres")
    }

    pub(super) fn pg_basebackup(&self) -> PathBuf {
        self.directory.join("pg_basebackup")
    }

    /// What `initdb --version` says, such as `initdb (PostgreSQL) 17.5`.
    pub(super) fn version(&self) -> Result<String> {
        let initdb = self.initdb();
        let output = Command::new(&initdb)
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run {}", initdb.display()))?;
        ensure!(
            output.status.success(),
            "{} --version failed",
            initdb.display()
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

fn on_path() -> Option<PathBuf> {
    // Where `initdb` is a link into the server's directory, `postgres` is beside its target.
    env::split_paths(&env::var_os("PATH")?)
        .filter_map(|directory| fs::canonicalize(directory.join("initdb")).ok())
        .filter_map(|initdb| initdb.parent().map(Path::to_owned))
        .find(|directory| is_complete(directory))
}

fn by_pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    let directory = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    is_complete(&directory).then_some(directory)
}

fn newest_of_debian() -> Option<PathBuf> {
    fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let major: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((major, entry.path().join("bin")))
        })
        .filter(|(_, directory)| is_complete(directory))
        .max_by_key(|(major, _)| *major)
        .map(|(_, directory)| directory)
}

fn is_complete(directory: &Path) -> bool {
    directory.join("initdb").is_file() && directory.join("postgres").is_file()
}
