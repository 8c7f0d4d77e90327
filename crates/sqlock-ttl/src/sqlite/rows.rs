//! What is read and written within a transaction.

use std::time::Duration;

use sqlock_core::FencingToken;
use sqlx::{Row, SqliteConnection};

use super::host_clock::{HostClock, micros};
use crate::{
    holder::HolderInfo,
    store::{Claim, Claimed, GiveBack, GivenBack, Renewal, Renewed},
};

/// How long the row's lease still lasts: `None` where it is free.
pub(super) async fn remaining(
    connection: &mut SqliteConnection,
    clock: &HostClock,
    row: &str,
) -> sqlx::Result<Option<Duration>> {
    let expires_at: Option<i64> = sqlx::query_scalar(
        "select expires_at from sqlock_leases
         where name = $1 and owner is not null and boot = $2",
    )
    .bind(row)
    .bind(&clock.boot)
    .fetch_optional(connection)
    .await?
    .flatten();
    let left = expires_at.map_or(0, |at| at.saturating_sub(clock.now()));
    let left = u64::try_from(left).unwrap_or_default();
    Ok((left > 0).then(|| Duration::from_micros(left)))
}

pub(super) async fn give_back(
    connection: &mut SqliteConnection,
    clock: &HostClock,
    item: &GiveBack,
) -> sqlx::Result<GivenBack> {
    let now = clock.now();
    let changed = sqlx::query(
        "update sqlock_leases set
           owner = case when boot = $3 and acquired_at + $4 > $5 then 'held' end,
           expires_at = case when boot = $3 and acquired_at + $4 > $5 then acquired_at + $4 end,
           payload = null
         where name = $1 and owner = $2",
    )
    .bind(&*item.lease.row)
    .bind(&*item.lease.owner.0)
    .bind(&clock.boot)
    .bind(micros(item.hold_at_least))
    .bind(now)
    .execute(connection)
    .await?;
    Ok(match changed.rows_affected() {
        0 => GivenBack::NotOurs,
        _ => GivenBack::Done,
    })
}

/// The caller has seen that the row is free, under the write lock; the statement looks again.
pub(super) async fn take(
    connection: &mut SqliteConnection,
    clock: &HostClock,
    claim: &Claim,
    holder: &HolderInfo,
) -> sqlx::Result<Claimed> {
    let now = clock.now();
    let token: Option<i64> = sqlx::query_scalar(
        "insert into sqlock_leases
           (name, owner, token, boot, acquired_at, expires_at, host, pid, label, payload)
         values ($1, $2, (select token + 1 from sqlock_floor), $3, $4, $5, $6, $7, $8, $9)
         on conflict (name) do update set
           owner = excluded.owner, token = max(sqlock_leases.token + 1, excluded.token),
           boot = excluded.boot, acquired_at = excluded.acquired_at,
           expires_at = excluded.expires_at, host = excluded.host, pid = excluded.pid,
           label = excluded.label, payload = excluded.payload
         where sqlock_leases.owner is null or sqlock_leases.boot is not excluded.boot
           or sqlock_leases.expires_at <= excluded.acquired_at
         returning token",
    )
    .bind(&*claim.row)
    .bind(&*claim.owner.0)
    .bind(&clock.boot)
    .bind(now)
    .bind(now.saturating_add(micros(claim.ttl)))
    .bind(&*holder.host)
    .bind(i64::from(holder.pid))
    .bind(claim.label.as_deref())
    .bind(claim.payload.as_deref())
    .fetch_optional(connection)
    .await?;
    Ok(match token {
        Some(token) => Claimed::Granted(FencingToken::new(token)),
        None => Claimed::Vanished,
    })
}

pub(super) async fn renew(
    connection: &mut SqliteConnection,
    clock: &HostClock,
    renewal: &Renewal,
) -> sqlx::Result<Renewed> {
    let now = clock.now();
    let changed = sqlx::query(
        "update sqlock_leases set expires_at = $4
         where name = $1 and owner = $2 and boot = $3 and expires_at > $5",
    )
    .bind(&*renewal.lease.row)
    .bind(&*renewal.lease.owner.0)
    .bind(&clock.boot)
    .bind(now.saturating_add(micros(renewal.ttl)))
    .bind(now)
    .execute(&mut *connection)
    .await?;
    if changed.rows_affected() > 0 {
        return Ok(Renewed::Done);
    }
    let row = sqlx::query("select owner from sqlock_leases where name = $1")
        .bind(&*renewal.lease.row)
        .fetch_optional(connection)
        .await?;
    Ok(match row {
        None => Renewed::Removed,
        Some(row) => match row.try_get::<Option<String>, _>(0)? {
            Some(owner) if *owner == *renewal.lease.owner.0 => Renewed::Expired,
            _ => Renewed::TakenOver,
        },
    })
}

/// Rows that are free and have been for long; the floor keeps their next tokens above.
pub(super) async fn sweep(
    connection: &mut SqliteConnection,
    clock: &HostClock,
    unused_for: Duration,
) -> sqlx::Result<u64> {
    let before = clock.now().saturating_sub(micros(unused_for));
    let tokens: Vec<i64> = sqlx::query_scalar(
        "delete from sqlock_leases where name in (
           select name from sqlock_leases
           where boot is not $1 or (coalesce(acquired_at, 0) <= $2
             and (owner is null or expires_at <= $2))
           limit 1000)
         returning token",
    )
    .bind(&clock.boot)
    .bind(before)
    .fetch_all(&mut *connection)
    .await?;
    if let Some(highest) = tokens.iter().max() {
        sqlx::query("update sqlock_floor set token = max(token, $1)")
            .bind(highest)
            .execute(connection)
            .await?;
    }
    Ok(tokens.len() as u64)
}
