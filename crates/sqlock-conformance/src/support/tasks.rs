use std::{env, future::Future, panic::resume_unwind, time::Duration};

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::{task::JoinSet, time::timeout};

/// Waits for all tasks, and panics as the first that panics does.
pub(crate) async fn join_all<T: 'static>(mut tasks: JoinSet<T>) -> Vec<T> {
    let mut values = Vec::with_capacity(tasks.len());
    while let Some(outcome) = tasks.join_next().await {
        match outcome {
            Ok(value) => values.push(value),
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(error) => panic!("a task was cancelled: {error}"),
        }
    }
    values
}

/// What `future` gives, which has to come in time.
pub(crate) async fn within<F: Future>(limit: Duration, what: &str, future: F) -> F::Output {
    match timeout(limit, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: nothing after {limit:?}"),
    }
}

/// Random numbers whose seed is told, so that a failure can be run again with `SQLOCK_SEED`.
pub(crate) fn random() -> StdRng {
    let seed = match env::var("SQLOCK_SEED") {
        Ok(seed) => seed.parse().expect("SQLOCK_SEED is a number"),
        Err(_) => rand::rng().random(),
    };
    eprintln!("SQLOCK_SEED={seed}");
    StdRng::seed_from_u64(seed)
}
