//! What can move between threads; the compiler runs this case.

use sqlock_core::{Error, LockBackend, LockGuard, Locks, Lost};

use crate::{Harness, World};

/// Every future of every verb can be spawned, and every handle can be shared.
pub async fn every_future_and_guard_is_send<H: Harness>(world: World<H>) {
    fn send<T: Send>(_: &T) {}
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Locks<H::Backend>>();
    shared::<LockGuard<<H::Backend as LockBackend>::Held>>();
    shared::<Lost>();
    shared::<Error>();

    let locks = world.node().await;
    send(&locks.try_acquire("k"));
    send(&locks.acquire("k"));
    send(&locks.acquire_within("k", H::PATIENCE));
    send(&locks.acquire_all(["k"]));
    send(&locks.lock("k").into_future());
    send(&locks.run_once("k", async |_| Ok::<_, Error>(())));
    send(&locks.with_lock("k", async |_| Ok::<_, Error>(())));
    send(&locks.shutdown());

    let guard = locks.acquire("k").await.unwrap();
    send(&guard.protect(async {}));
    send(&guard.lost().wait());
    send(&guard.lost().protect(async {}));
    send(&guard.release());
    let guard = locks.acquire("another").await.unwrap();
    send(&guard.roll_back());
}
