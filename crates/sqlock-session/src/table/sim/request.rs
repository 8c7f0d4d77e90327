//! Only core makes requests: it is made to make them.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{LazyLock, Mutex},
    task::{Context, Poll, Waker},
};

use async_trait::async_trait;
use sqlock_core::{
    Error, LockBackend, LockGuard, LockKey, Locks, Mode, Request, Result, SharedBackend, Wait,
};
use tokio::runtime::{Builder, Runtime};

use crate::SessionHeld;

pub(super) type Guard = LockGuard<SessionHeld>;

pub(super) fn poll_once<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

pub(super) fn request(keys: Vec<LockKey>, mode: Mode, waits: bool) -> Request {
    // its timers are never waited for
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| Builder::new_current_thread().enable_time().build().unwrap());
    let _runtime = RUNTIME.enter();
    let locks = Locks::new(Catch::default());
    let mut lock = locks.lock_all(keys);
    if mode == Mode::Shared {
        lock = lock.shared();
    }
    if waits {
        poll_once(pin!(lock.within(Wait::forever()).into_future()));
    } else {
        poll_once(pin!(lock.try_acquire()));
    }
    let caught = locks.backend().0.lock().unwrap().take();
    caught.expect("a request")
}

#[derive(Debug, Default)]
struct Catch(Mutex<Option<Request>>);

#[async_trait]
impl LockBackend for Catch {
    type Held = SessionHeld;

    fn name(&self) -> &'static str {
        "catch"
    }

    async fn acquire(&self, request: Request) -> Result<Option<Guard>> {
        *self.0.lock().unwrap() = Some(request);
        Err(Error::ShutDown { backend: "catch" })
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl SharedBackend for Catch {
    async fn acquire_shared(&self, request: Request) -> Result<Option<Guard>> {
        self.acquire(request).await
    }
}
