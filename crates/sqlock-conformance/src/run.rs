use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
};

use crate::{Harness, World, support::runtime};

/// Runs one case, as the tests that [`conformance!`](crate::conformance) emits do: in a new world,
/// on a new runtime, within [`Harness::TIME_LIMIT`].
///
/// # Panics
///
/// Where the case does, where it takes too long, and where it leaves anything held.
pub fn run<H: Harness>(name: &'static str, case: impl AsyncFnOnce(World<H>) + Send + 'static) {
    let (sender, outcome) = channel();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let runtime = runtime();
            let result = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(async {
                    let world = World::<H>::start().await;
                    case(world.clone()).await;
                    world.until_free().await;
                });
            }));
            // a runtime that cannot be shut down is a hang as well
            drop(runtime);
            let _ = sender.send(result);
        })
        .expect("a thread for the case");
    match outcome.recv_timeout(H::TIME_LIMIT) {
        Ok(Ok(())) => {}
        Ok(Err(panic)) => resume_unwind(panic),
        Err(RecvTimeoutError::Timeout) => {
            panic!(
                "case {name} hangs: it was not over after {:?}",
                H::TIME_LIMIT
            )
        }
        Err(RecvTimeoutError::Disconnected) => panic!("case {name} ended without an outcome"),
    }
}
