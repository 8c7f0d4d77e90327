use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, bail};
use testcontainers_modules::postgres::Postgres;
use testcontainers_modules::testcontainers::core::IntoContainerPort as _;
use testcontainers_modules::testcontainers::runners::AsyncRunner as _;
use testcontainers_modules::testcontainers::{ContainerAsync, ImageExt as _};
use tokio::runtime;
use tokio::sync::oneshot;

const IMAGE: &str = "SQLOCK_TEST_POSTGRES_IMAGE";
const DEFAULT_IMAGE: &str = "postgres:17-alpine";

const SETTINGS: &[(&str, &str)] = &[
    ("max_connections", "300"),
    ("fsync", "off"),
    ("autovacuum", "off"),
];

/// A server in a container, looked after by a thread with a runtime of its own, since tests' own
/// runtimes come and go. Removed when dropped, and when this process dies.
#[derive(Debug)]
pub(super) struct Container {
    url: String,
    keeper: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    _reaper: Option<Child>,
}

struct Started {
    id: String,
    url: String,
}

impl Container {
    pub(super) fn start(settings: &[(String, String)]) -> Result<Self> {
        let image = env::var(IMAGE).ok().filter(|image| !image.is_empty());
        let image = image.unwrap_or_else(|| DEFAULT_IMAGE.to_owned());
        let Some((name, tag)) = image
            .rsplit_once(':')
            .map(|(name, tag)| (name.to_owned(), tag.to_owned()))
        else {
            bail!("{IMAGE} is {image:?}; it takes the form name:tag");
        };
        let command = command(settings);
        let (report, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("container".to_owned())
            .spawn(move || {
                let runtime = runtime::Builder::new_current_thread().enable_all().build();
                runtime
                    .expect("a runtime can be built")
                    .block_on(keep(name, tag, command, report, stopped));
            })?;
        let Started { id, url } = started
            .recv()
            .context("the container's thread ended")?
            .with_context(|| format!("cannot start a container of {image}"))?;
        Ok(Self {
            url,
            keeper: Some((stop, thread)),
            _reaper: reaper(&id),
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.keeper.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

fn command(settings: &[(String, String)]) -> Vec<String> {
    let common = SETTINGS
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let own = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    common
        .chain(own)
        .flat_map(|setting| ["-c".to_owned(), setting])
        .collect()
}

async fn keep(
    name: String,
    tag: String,
    command: Vec<String>,
    report: mpsc::Sender<Result<Started>>,
    stopped: oneshot::Receiver<()>,
) {
    let request = Postgres::default()
        .with_name(name)
        .with_tag(tag)
        .with_cmd(command);
    let outcome = async {
        let container = request.start().await?;
        let started = describe(&container).await?;
        anyhow::Ok((container, started))
    };
    match outcome.await {
        Ok((container, started)) => {
            let _ = report.send(Ok(started));
            let _ = stopped.await;
            let _ = container.rm().await;
        }
        Err(error) => {
            let _ = report.send(Err(error));
        }
    }
}

async fn describe(container: &ContainerAsync<Postgres>) -> Result<Started> {
    let host = container.get_host().await?;
    let port = container.get_host_port_ipv4(5432.tcp()).await?;
    let url = format!("postgres://postgres:postgres@{host}:{port}/postgres");
    Ok(Started {
        id: container.id().to_owned(),
        url,
    })
}

/// Removes the container once its standard input closes, which it does when this process dies in
/// whatever way. Needs the engine's command line, without which the container is left running.
fn reaper(id: &str) -> Option<Child> {
    Command::new("sh")
        .args([
            "-c",
            "read -r _; docker rm --force --volumes \"$1\"",
            "reaper",
            id,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()
}
