use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    thread,
};

use tokio::{runtime::Runtime, sync::oneshot};

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Does `work` on a plain thread, where there is no runtime.
pub(crate) async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, outcome) = oneshot::channel();
    thread::spawn(move || sender.send(catch_unwind(AssertUnwindSafe(work))));
    match outcome.await.expect("the thread answers") {
        Ok(value) => value,
        Err(panic) => resume_unwind(panic),
    }
}

/// Does `work` on another runtime, and gives that runtime too.
pub(crate) async fn elsewhere<T: Send + 'static>(
    work: impl AsyncFnOnce() -> T + Send + 'static,
) -> (Runtime, T) {
    on_a_thread(move || {
        let runtime = runtime();
        let value = runtime.block_on(work());
        (runtime, value)
    })
    .await
}
