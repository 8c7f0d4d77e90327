use sqlock::{Locks, SessionBackend};

async fn example(locks: Locks<SessionBackend>, invoice: u64) -> sqlock::Result<()> {
    let guard = locks.acquire(invoice).await?;
    guard.release().await
}

fn main() {}
