use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::account::Account;
use super::binaries::Binaries;
use super::scratch::{Scratch, ServerDirectory};

/// What all test servers have in common. A server's own settings come after, and win.
///
/// `synchronous_commit` stays on: without it a killed server loses commits, not only a crashed
/// machine's.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("max_connections", "300"),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("max_wal_size", "1GB"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("log_line_prefix", "%m [%p] %d "),
];

/// Makes a data directory: a copy of a template, since `initdb` takes its second.
pub(super) fn create(
    binaries: &Binaries,
    account: &Account,
    settings: &[(String, String)],
) -> Result<ServerDirectory> {
    let scratch = Scratch::lock()?;
    scratch.sweep()?;
    let template = template(&scratch, binaries, account)?;
    let directory = scratch.server_directory()?;
    drop(scratch);

    account.give(directory.path())?;
    run(Command::new("cp")
        .arg("-a")
        .arg(&template)
        .arg(directory.data()))?;
    configure(&directory, settings)?;
    Ok(directory)
}

/// Makes the data directory of a streaming standby: a copy of a running primary's.
pub(super) fn copy(
    binaries: &Binaries,
    account: &Account,
    primary_port: u16,
) -> Result<ServerDirectory> {
    let scratch = Scratch::lock()?;
    scratch.sweep()?;
    let directory = scratch.server_directory()?;
    drop(scratch);

    account.give(directory.path())?;
    let mut copy = Command::new(binaries.pg_basebackup());
    copy.args(["--host=127.0.0.1", "--username=postgres", "--port"])
        .arg(primary_port.to_string())
        .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"])
        .arg("--pgdata")
        .arg(directory.data())
        .current_dir("/");
    account.apply(&mut copy);
    run(&mut copy)?;
    // The primary's settings are in the copy. All are the standby's too, but where its socket is.
    append(&directory, &[socket_directory(&directory)?])?;
    Ok(directory)
}

fn template(scratch: &Scratch, binaries: &Binaries, account: &Account) -> Result<PathBuf> {
    let version: String = binaries
        .version()?
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
    let template = scratch.path(&format!("template-{version}-{}", account.name()));
    if template.exists() {
        return Ok(template);
    }
    // Renamed once complete, so that one left half made by a killed process is never used.
    let unfinished = template.with_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir(&unfinished)?;
    account.give(&unfinished)?;
    let mut initdb = Command::new(binaries.initdb());
    initdb
        .args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ])
        .args(["--wal-segsize=1", "--no-sync", "-D"])
        .arg(&unfinished)
        .current_dir("/");
    account.apply(&mut initdb);
    run(&mut initdb)?;
    fs::rename(&unfinished, &template)?;
    Ok(template)
}

fn configure(directory: &ServerDirectory, settings: &[(String, String)]) -> Result<()> {
    let own = settings.iter();
    let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
    let common = SETTINGS.iter().copied();
    let socket = [socket_directory(directory)?];
    let all: Vec<_> = common.chain(socket).chain(own).collect();
    append(directory, &all)
}

fn socket_directory(directory: &ServerDirectory) -> Result<(&str, &str)> {
    Ok(("unix_socket_directories", path_text(directory.path())?))
}

fn append(directory: &ServerDirectory, settings: &[(&str, &str)]) -> Result<()> {
    let mut text = String::from("\n");
    for (name, value) in settings {
        writeln!(text, "{name} = '{}'", value.replace('\'', "''"))?;
    }
    let file = directory.data().join("postgresql.conf");
    OpenOptions::new()
        .append(true)
        .open(&file)
        .and_then(|mut conf| conf.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", file.display()))
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        stderr.trim()
    );
    Ok(())
}
