use std::{fs, io, time::Duration};

use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

const POLL: Duration = Duration::from_millis(10);

/// What a process has that could leak.
#[derive(Debug, Clone, Copy)]
pub(super) struct Belongings {
    tasks: usize,
    sockets: usize,
}

impl Belongings {
    pub(super) fn count() -> io::Result<Self> {
        let mut sockets = 0;
        for file in fs::read_dir("/proc/self/fd")? {
            // The directory's own is closed by the time that it is looked at.
            let target = fs::read_link(file?.path()).unwrap_or_default();
            sockets += usize::from(target.to_string_lossy().starts_with("socket:"));
        }
        Ok(Self {
            tasks: Handle::current().metrics().num_alive_tasks(),
            sockets,
        })
    }

    /// How many tasks and sockets there are more than before, at last.
    pub(super) async fn more_after(self, limit: Duration) -> io::Result<(usize, usize)> {
        let end = Instant::now() + limit;
        loop {
            let now = Self::count()?;
            let tasks = now.tasks.saturating_sub(self.tasks);
            let sockets = now.sockets.saturating_sub(self.sockets);
            if tasks + sockets == 0 || Instant::now() > end {
                return Ok((tasks, sockets));
            }
            sleep(POLL).await;
        }
    }
}
