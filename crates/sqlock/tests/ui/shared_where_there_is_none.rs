use sqlock::{Locks, TtlBackend};

async fn example(locks: Locks<TtlBackend>) -> sqlock::Result<()> {
    let guard = locks.lock("report").shared().await?;
    guard.release().await
}

fn main() {}
