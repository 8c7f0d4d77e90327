#![deny(unused_must_use)]

use sqlock::{Locks, SessionBackend};

async fn example(locks: Locks<SessionBackend>) -> sqlock::Result<()> {
    locks.acquire("report").await?;
    Ok(())
}

fn main() {}
