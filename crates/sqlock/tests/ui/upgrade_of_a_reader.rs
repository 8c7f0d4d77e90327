use sqlock::{Held, Locks, SessionBackend, WriteGuard};

async fn example(locks: Locks<SessionBackend>) -> sqlock::Result<()> {
    let catalog = locks.read_write("catalog")?;
    let reader = catalog.read().await?;
    rewrite(&reader);
    let writer = reader.upgrade().await?;
    writer.release().await
}

fn rewrite<H: Held>(_proof: &WriteGuard<H>) {}

fn main() {}
