use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

/// The outcome of `future`, or an error where it panicked.
///
/// sqlx panics on messages that are shorter than their own headers. Whoever sends them, a broken
/// proxy for one, must not end the task that looks after everybody's locks. The connection is of
/// unknown state then, and has to be closed.
///
/// # Errors
///
/// [`sqlx::Error::Protocol`] where it panicked.
///
/// # Cancel safety
///
/// As that of `future`.
pub async fn shielded<F: Future>(future: F) -> sqlx::Result<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| {
        // it is not polled again, and what it leaves behind is a connection that is closed
        let polled = AssertUnwindSafe(|| future.as_mut().poll(context));
        match catch_unwind(polled) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(unreadable(&*panic))),
        }
    })
    .await
}

fn unreadable(panic: &(dyn Any + Send)) -> sqlx::Error {
    let why = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given");
    sqlx::Error::Protocol(format!("a message that cannot be read: {why}"))
}
