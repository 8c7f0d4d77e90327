use sqlock::{Locks, SessionBackend};

async fn example(locks: Locks<SessionBackend>) -> sqlock::Result<()> {
    let mut guard = locks.acquire("report").await?;
    guard.connection();
    Ok(())
}

fn main() {}
