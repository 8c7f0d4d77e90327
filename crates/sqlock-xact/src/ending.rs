//! The end of transactions that nobody waits for, from wherever it comes.

use std::thread;

use sqlx::{Postgres, Transaction};
use tokio::runtime::Handle;

use crate::statement::ROLL_BACK;

/// What is left of it is empty. sqlx rolls it back on its way to the pool.
pub(crate) fn give_back(runtime: &Handle, transaction: Transaction<'static, Postgres>) {
    within(runtime, move || drop(transaction));
}

/// By a statement of our own first: sqlx, which counts, would only go back to a savepoint where a
/// nested transaction was leaked, and the pool would get a connection that holds the lock.
pub(crate) fn roll_back(runtime: &Handle, mut transaction: Transaction<'static, Postgres>) {
    within(runtime, move || {
        let rolling_back = async move {
            // it fails where there is no transaction any more, or no connection
            let ended = sqlx::raw_sql(ROLL_BACK).execute(&mut *transaction).await;
            if let Err(error) = ended {
                tracing::debug!(%error, "roll-back of a dropped guard");
            }
        };
        drop(tokio::spawn(rolling_back));
    });
}

/// Outside of a runtime a pool's connection cannot be dropped; and of a runtime that is gone, or
/// goes, it is closed.
fn within(runtime: &Handle, end: impl FnOnce() + Send + 'static) {
    let thread_ends = Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed());
    if thread_ends {
        // a guard in a thread-local: no runtime can be entered on this thread any more
        let runtime = runtime.clone();
        let ending = move || {
            let _runtime = runtime.enter();
            end();
        };
        thread::Builder::new().spawn(ending).ok();
        return;
    }
    let _runtime = runtime.enter();
    end();
}
