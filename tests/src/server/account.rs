use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The account that a server runs under: PostgreSQL refuses root.
#[derive(Debug, Clone)]
pub(crate) enum Account {
    Own,
    Other {
        name: &'static str,
        uid: u32,
        gid: u32,
    },
}

impl Account {
    pub(crate) fn for_server() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        for name in ["postgres", "nobody"] {
            if let (Some(uid), Some(gid)) = (id("-u", name), id("-g", name)) {
                return Ok(Self::Other { name, uid, gid });
            }
        }
        bail!(
            "postgresql refuses to run as root, and there is neither an account postgres nor nobody; add one with useradd"
        )
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Own => "self",
            Self::Other { name, .. } => name,
        }
    }

    /// Makes `command` run under this account.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let Self::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid);
        }
    }

    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        let Self::Other { uid, gid, name } = self else {
            return Ok(());
        };
        chown(path, Some(*uid), Some(*gid))
            .with_context(|| format!("cannot give {} to {name}", path.display()))
    }
}

fn id(option: &str, name: &str) -> Option<u32> {
    let output = Command::new("id").args([option, name]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
