use sqlock::{Locks, SessionBackend};

async fn example(locks: Locks<SessionBackend>) -> sqlock::Result<()> {
    let guard = locks.acquire("report").await?;
    guard.release().await?;
    guard.check()
}

fn main() {}
