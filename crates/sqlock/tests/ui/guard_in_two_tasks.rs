use sqlock::{Locks, SessionBackend};

async fn example(locks: Locks<SessionBackend>) -> sqlock::Result<()> {
    let guard = locks.acquire("report").await?;
    tokio::spawn(async move { guard.check() });
    tokio::spawn(async move { guard.check() });
    Ok(())
}

fn main() {}
