use std::time::Duration;

use sqlock::{Locks, SessionBackend};

async fn example(locks: Locks<SessionBackend>) -> sqlock::Result<()> {
    let mut guard = locks.acquire("report").await?;
    guard.extend(Duration::from_secs(1)).await
}

fn main() {}
