use std::time::Duration;

use tokio::time::{Instant, sleep};

const POLL: Duration = Duration::from_millis(10);

/// Polls `condition` until it holds; panics where it does not within `timeout`.
///
/// ```no_run
/// # async fn example(database: sqlock_tests::TestDatabase) {
/// use std::time::Duration;
/// use sqlock_tests::eventually;
///
/// eventually(Duration::from_secs(5), async || database.count_connections().await == 0).await;
/// # }
/// ```
#[track_caller]
pub fn eventually<C>(timeout: Duration, condition: C) -> impl Future<Output = ()>
where
    C: AsyncFnMut() -> bool,
{
    let caller = std::panic::Location::caller();
    async move {
        assert!(
            holds_within(timeout, condition).await,
            "{caller}: did not come about within {timeout:?}"
        );
    }
}

/// Polls `condition` until it holds, for at most `timeout`; says whether it did.
pub async fn holds_within<C>(timeout: Duration, mut condition: C) -> bool
where
    C: AsyncFnMut() -> bool,
{
    let deadline = Instant::now() + timeout;
    loop {
        if condition().await {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        sleep(POLL).await;
    }
}
