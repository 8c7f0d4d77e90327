use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use testcontainers_modules::testcontainers::core::Image;
use testcontainers_modules::testcontainers::runners::AsyncRunner as _;
use testcontainers_modules::testcontainers::{ContainerAsync, ContainerRequest};
use tokio::runtime;
use tokio::sync::oneshot;

/// A container, looked after by a thread with a runtime of its own, since tests' own runtimes come
/// and go. Removed when dropped, and when this process dies.
#[derive(Debug)]
pub(crate) struct Kept {
    keeper: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    _reaper: Option<Child>,
}

impl Kept {
    /// Starts a container, and asks of it what its users must know.
    pub(crate) fn start<I, T, F>(request: ContainerRequest<I>, describe: F) -> Result<(Self, T)>
    where
        I: Image + 'static,
        T: Send + 'static,
        F: AsyncFnOnce(&ContainerAsync<I>) -> Result<T> + Send + 'static,
    {
        let image = request.descriptor();
        let (report, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("container".to_owned())
            .spawn(move || {
                let runtime = runtime::Builder::new_current_thread().enable_all().build();
                runtime
                    .expect("a runtime can be built")
                    .block_on(keep(request, describe, report, stopped));
            })?;
        let (id, description) = started
            .recv()
            .context("the container's thread ended")?
            .with_context(|| format!("cannot start a container of {image}"))?;
        let kept = Self {
            keeper: Some((stop, thread)),
            _reaper: reaper(&id),
        };
        Ok((kept, description))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.keeper.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

async fn keep<I: Image, T>(
    request: ContainerRequest<I>,
    describe: impl AsyncFnOnce(&ContainerAsync<I>) -> Result<T>,
    report: mpsc::Sender<Result<(String, T)>>,
    stopped: oneshot::Receiver<()>,
) {
    let outcome = async {
        let container = request.start().await?;
        let description = describe(&container).await?;
        anyhow::Ok((container, description))
    };
    match outcome.await {
        Ok((container, description)) => {
            let _ = report.send(Ok((container.id().to_owned(), description)));
            let _ = stopped.await;
            let _ = container.rm().await;
        }
        Err(error) => {
            let _ = report.send(Err(error));
        }
    }
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
