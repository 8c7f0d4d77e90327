//! How an application tests its own handling of locks, without a server.

use sqlock::{LockBackend, Locks, LossCause, MemoryBackend};

/// The code under test: any backend will do.
async fn import<B: LockBackend>(locks: &Locks<B>) -> Result<&'static str, sqlock::Error> {
    let Some(guard) = locks.try_acquire("import").await? else {
        return Ok("another node imports");
    };
    tokio::task::yield_now().await;
    guard.check()?;
    guard.release().await?;
    Ok("imported")
}

#[tokio::main]
async fn main() -> sqlock::Result<()> {
    let backend = MemoryBackend::new();
    let other_node = Locks::new(backend.another_node());
    let locks = Locks::new(backend);

    assert_eq!(import(&locks).await?, "imported");

    let guard = other_node.acquire("import").await?;
    assert_eq!(import(&locks).await?, "another node imports");
    drop(guard);

    let mut importing = Box::pin(import(&locks));
    let lose = async {
        locks
            .backend()
            .faults()
            .lose_all(LossCause::ConnectionClosed);
    };
    let (imported, ()) = tokio::join!(&mut importing, lose);
    assert!(imported.is_err());
    Ok(())
}
