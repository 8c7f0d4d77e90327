use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

/// What happens between two polls.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// Nothing: the replies are still under way when the future is dropped.
    AtOnce,
    /// The future is waited for to be woken, so that every poll gets it further.
    AsItGoes,
}

/// Polls `future` this many times, unless it is done before.
pub(crate) async fn poll_times<F: Future>(
    mut future: Pin<&mut F>,
    times: usize,
    pace: Pace,
) -> Option<F::Output> {
    let woken = Arc::new(Woken(Notify::new()));
    let waker = Waker::from(Arc::clone(&woken));
    let mut waits = matches!(pace, Pace::AsItGoes);
    for _ in 0..times {
        // within `poll_fn`, so that the runtime's context is there
        let polled = poll_fn(|_| {
            let mut context = Context::from_waker(&waker);
            Poll::Ready(future.as_mut().poll(&mut context))
        });
        if let Poll::Ready(output) = polled.await {
            return Some(output);
        }
        if waits {
            // one that waits for a lock is not woken, and need not be waited for again
            let woken = timeout(Duration::from_millis(10), woken.0.notified());
            waits = woken.await.is_ok();
        }
    }
    None
}

struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}
