//! A schedule that every node follows, while one of them does the work. Needs `DATABASE_URL`.

use std::time::Duration;

use sqlock::{FencingToken, Locks, TtlBackend};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The nodes wake within this time of each other. For so long the lock stays taken, although the work
/// is done sooner.
const SKEW: Duration = Duration::from_secs(10 * 60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let backend = TtlBackend::connect(&std::env::var("DATABASE_URL")?)?;
    backend.create_table().await?;
    let locks = Locks::new(backend);
    let mut days = tokio::time::interval(DAY);
    loop {
        days.tick().await;
        let nightly = locks.lock("nightly-report").hold_at_least(SKEW);
        // The body is stopped where the lease is lost.
        let done = nightly
            .run_once(async |lock| write_report(lock.token()).await)
            .await;
        match done {
            Ok(Some(pages)) => eprintln!("wrote {pages} pages"),
            Ok(None) => eprintln!("another node writes it"),
            Err(error) => eprintln!("not written today: {error}"),
        }
    }
}

/// What it writes to can refuse an older token, as `fenced_resource` does.
async fn write_report(_token: Option<FencingToken>) -> Result<u32, sqlock::Error> {
    Ok(7)
}
