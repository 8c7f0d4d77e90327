use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};

const SOURCE: &str = "SQLOCK_TEST_PGBOUNCER_SOURCE";
/// Where Debian has it, which is not on everybody's `PATH`.
const DEBIAN: &str = "/usr/sbin/pgbouncer";

const NOTHING_FOUND: &str = "no pgbouncer to test with; do one of these:
  - install it: apt-get install pgbouncer (debian, ubuntu), dnf install pgbouncer (fedora), \
brew install pgbouncer (macos); it is looked for on PATH and in /usr/sbin
  - run a container engine that answers to docker's api, and have an image with it, as \
`./scripts/test-image pgbouncer` makes one; SQLOCK_TEST_PGBOUNCER_IMAGE names another";

/// Where a pooler comes from.
#[derive(Debug)]
pub(super) enum Source {
    Local(PathBuf),
    Container,
    Odyssey,
}

impl Source {
    pub(super) fn of_pooler() -> Result<Self> {
        let forced = env::var(SOURCE).unwrap_or_default();
        let local = || locate().map(Self::Local);
        match forced.as_str() {
            "" => Ok(local().unwrap_or(Self::Container)),
            "local" => local()
                .context(NOTHING_FOUND)
                .context(format!("{SOURCE} is local")),
            "container" => Ok(Self::Container),
            "odyssey" => Ok(Self::Odyssey),
            _ => bail!("{SOURCE} is {forced:?}; it takes local, container or odyssey"),
        }
    }
}

/// The failure to start a container, which is the last resort, is the failure to find anything.
pub(super) fn nothing_found(error: &anyhow::Error) -> anyhow::Error {
    anyhow!("{NOTHING_FOUND}\na container was tried last: {error:#}")
}

fn locate() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| directory.join("pgbouncer"))
        .chain([Path::new(DEBIAN).to_owned()])
        .find(|binary| binary.is_file())
}
