use std::env;

use anyhow::{Context as _, Result, anyhow, bail};

use super::binaries::Binaries;

const URL: &str = "SQLOCK_TEST_POSTGRES_URL";
const SOURCE: &str = "SQLOCK_TEST_POSTGRES_SOURCE";

const NOTHING_FOUND: &str = "no postgresql to test against; do one of these:
  - install the server's binaries: apt-get install postgresql (debian, ubuntu), \
dnf install postgresql-server (fedora), brew install postgresql (macos); \
initdb is looked for on PATH, in `pg_config --bindir` and under /usr/lib/postgresql/*/bin
  - run a container engine that answers to docker's api
  - set SQLOCK_TEST_POSTGRES_URL to the url of a superuser on a running server";

/// Where a server comes from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Url(String),
    Local(Binaries),
    Container,
}

impl Source {
    /// For the server that all tests of a process share.
    pub(super) fn of_shared_server() -> Result<Self> {
        match forced()?.as_deref() {
            Some("url") => url()
                .map(Self::Url)
                .with_context(|| format!("{SOURCE} is url, and {URL} is not set")),
            Some(_) => Self::of_private_server(),
            None => url().map_or_else(Self::of_private_server, |url| Ok(Self::Url(url))),
        }
    }

    /// For a server that its test stops and kills as it likes: never the user's own.
    pub(super) fn of_private_server() -> Result<Self> {
        let local = Binaries::locate().map(Self::Local);
        match forced()?.as_deref() {
            Some("container") => Ok(Self::Container),
            Some("local") => local
                .context(NOTHING_FOUND)
                .context(format!("{SOURCE} is local")),
            _ => Ok(local.unwrap_or(Self::Container)),
        }
    }
}

/// The failure to start a container, which is the last resort, is the failure to find anything.
pub(super) fn nothing_found(error: &anyhow::Error) -> anyhow::Error {
    anyhow!("{NOTHING_FOUND}\na container was tried last: {error:#}")
}

fn forced() -> Result<Option<String>> {
    let Ok(source) = env::var(SOURCE) else {
        return Ok(None);
    };
    match source.as_str() {
        "" => Ok(None),
        "url" | "local" | "container" => Ok(Some(source)),
        _ => bail!("{SOURCE} is {source:?}; it takes url, local or container"),
    }
}

fn url() -> Option<String> {
    env::var(URL).ok().filter(|url| !url.is_empty())
}
