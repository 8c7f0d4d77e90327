use std::time::Duration;

use sqlock_core::Result;
use sqlx::{PgPool, postgres::PgConnectOptions};
use tokio::time::timeout;

use super::{
    LockSupport, Report, Role,
    connection::{End, connect},
    identify::identify,
    self_test::{Kind, self_test},
};
use crate::{Failure, shielded};

/// How long the first lock is held up by a test of an engine that is not known.
const TEST_PATIENCE: Duration = Duration::from_secs(2);

/// Refuses a server on which locks of transactions would not be what they say: a standby, and
/// engines without. Poolers are all right, and are not looked for.
///
/// Two round trips on a connection of the pool. An engine that is not known is tested on two
/// connections beside the pool, within two seconds; where they are not to be had, it is not refused.
///
/// # Errors
///
/// As [`Report::check_transaction_locks`], and those of the connections.
///
/// # Cancel safety
///
/// Safe: nothing is begun on the pool's connection.
pub async fn transaction_locks(pool: &PgPool) -> Result<Report> {
    let failed = |error| Failure::of(error).error("xact", "preflight");
    let mut connection = shielded(pool.acquire()).await.flatten().map_err(failed)?;
    let mut report = identify(&mut connection).await.map_err(failed)?;
    drop(connection);
    if report.role != Some(Role::Standby) && report.transaction_locks.is_untested() {
        let options = pool.connect_options();
        report.transaction_locks = test_apart(&options).await.map_err(failed)?;
    }
    report.check_transaction_locks()?;
    Ok(report)
}

async fn test_apart(options: &PgConnectOptions) -> sqlx::Result<LockSupport> {
    let connected = async {
        let first = connect(options).await?;
        Ok((first, connect(options).await?))
    };
    let untested = |reason: String| Ok(LockSupport::Untested { reason });
    match timeout(TEST_PATIENCE, connected).await {
        Ok(Ok((mut first, mut second))) => {
            let tested = self_test(Kind::Transaction, &mut first, &mut second, TEST_PATIENCE).await;
            first.end().await;
            second.end().await;
            tested
        }
        Ok(Err(error @ sqlx::Error::Database(_))) => untested(error.to_string()),
        Ok(Err(error)) => Err(error),
        Err(_) => untested(format!("no connection within {TEST_PATIENCE:?}")),
    }
}
