use sqlock::{Locks, SessionBackend};

async fn example(locks: Locks<SessionBackend>) -> sqlock::Result<()> {
    let guard = locks.acquire("report").await?;
    guard.commit().await
}

fn main() {}
