use std::{sync::Arc, time::SystemTime};

use sqlock_core::{FencingToken, Holder, Mode};

/// What this process writes into the rows that it holds.
#[derive(Debug, Clone)]
pub(crate) struct HolderInfo {
    pub(crate) host: Arc<str>,
    pub(crate) pid: u32,
}

impl HolderInfo {
    pub(crate) fn of_this_process() -> Self {
        Self {
            host: host_name().into(),
            pid: std::process::id(),
        }
    }
}

/// Without a dependency or unsafe code: what the system calls this machine, or `unknown`.
fn host_name() -> String {
    let from_system = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = from_system
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .unwrap_or_default();
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}

/// A row of the table, as anybody may read it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseRecord {
    /// The key as the table writes it: a name stands for itself.
    pub row: String,
    /// The token of the acquisition.
    pub token: FencingToken,
    /// The host of the holder.
    pub host: Option<String>,
    /// The holder's process on that host.
    pub pid: Option<i64>,
    /// What the holder calls itself.
    pub label: Option<String>,
    /// What the holder wrote for others to read.
    pub payload: Option<String>,
    /// When it was taken, by the database's clock.
    pub acquired_at: SystemTime,
    /// When it ends unless it is renewed, by the database's clock.
    pub expires_at: SystemTime,
}

impl LeaseRecord {
    pub(crate) fn into_holder(self) -> Holder {
        let mut holder = Holder::unknown(Mode::Exclusive);
        holder.label = self.label;
        holder.host = self.host;
        holder.pid = self.pid;
        holder.since = Some(self.acquired_at);
        holder
    }
}
