use sqlock_core::{IntoLockKey, IntoLockKeys, Result, Wait};
use sqlx::PgConnection;

use super::LockIn;

/// Takes the lock in the transaction that the connection is in, if it is free. Does not wait.
///
/// `false` means that another has it: nothing is held then.
///
/// ```no_run
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let mut transaction = pool.begin().await?;
/// if sqlock_xact::try_lock_in(&mut transaction, "invoice/42").await? {
///     // … work in `transaction` …
///     transaction.commit().await?;
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// As [`LockIn::try_lock`].
///
/// # Cancel safety
///
/// As [`LockIn::try_lock`].
pub async fn try_lock_in(connection: &mut PgConnection, key: impl IntoLockKey) -> Result<bool> {
    LockIn::new().try_lock(connection, [key]).await
}

/// Waits for the lock in the transaction that the connection is in, within a budget.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let mut transaction = pool.begin().await?;
/// sqlock_xact::lock_in(&mut transaction, "invoice/42", Duration::from_secs(5)).await?;
/// // … work in `transaction` …
/// transaction.commit().await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// As [`LockIn::lock`].
///
/// # Cancel safety
///
/// As [`LockIn::lock`].
pub async fn lock_in(
    connection: &mut PgConnection,
    key: impl IntoLockKey,
    wait: impl Into<Wait>,
) -> Result<()> {
    LockIn::new().lock(connection, [key], wait).await
}

/// As [`try_lock_in`], beside other shared holders.
///
/// # Errors
///
/// As [`LockIn::try_lock`].
///
/// # Cancel safety
///
/// As [`LockIn::try_lock`].
pub async fn try_lock_shared_in(
    connection: &mut PgConnection,
    key: impl IntoLockKey,
) -> Result<bool> {
    LockIn::new().shared().try_lock(connection, [key]).await
}

/// As [`lock_in`], beside other shared holders.
///
/// # Errors
///
/// As [`LockIn::lock`].
///
/// # Cancel safety
///
/// As [`LockIn::lock`].
pub async fn lock_shared_in(
    connection: &mut PgConnection,
    key: impl IntoLockKey,
    wait: impl Into<Wait>,
) -> Result<()> {
    LockIn::new().shared().lock(connection, [key], wait).await
}

/// As [`try_lock_in`], for several locks: all of them or none.
///
/// # Errors
///
/// As [`LockIn::try_lock`].
///
/// # Cancel safety
///
/// As [`LockIn::try_lock`].
pub async fn try_lock_all_in(
    connection: &mut PgConnection,
    keys: impl IntoLockKeys,
) -> Result<bool> {
    LockIn::new().try_lock(connection, keys).await
}

/// As [`lock_in`], for several locks, within one budget for all of them.
///
/// They are taken in the order of their ids, so that two who name the same ones cannot wait for each
/// other.
///
/// # Errors
///
/// As [`LockIn::lock`].
///
/// # Cancel safety
///
/// As [`LockIn::lock`].
pub async fn lock_all_in(
    connection: &mut PgConnection,
    keys: impl IntoLockKeys,
    wait: impl Into<Wait>,
) -> Result<()> {
    LockIn::new().lock(connection, keys, wait).await
}

/// As [`try_lock_all_in`], beside other shared holders.
///
/// # Errors
///
/// As [`LockIn::try_lock`].
///
/// # Cancel safety
///
/// As [`LockIn::try_lock`].
pub async fn try_lock_all_shared_in(
    connection: &mut PgConnection,
    keys: impl IntoLockKeys,
) -> Result<bool> {
    LockIn::new().shared().try_lock(connection, keys).await
}

/// As [`lock_all_in`], beside other shared holders.
///
/// # Errors
///
/// As [`LockIn::lock`].
///
/// # Cancel safety
///
/// As [`LockIn::lock`].
pub async fn lock_all_shared_in(
    connection: &mut PgConnection,
    keys: impl IntoLockKeys,
    wait: impl Into<Wait>,
) -> Result<()> {
    LockIn::new().shared().lock(connection, keys, wait).await
}
