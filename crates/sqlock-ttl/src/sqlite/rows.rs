//! What is read and written within a transaction.

use std::time::{Duration, SystemTime};

use sqlock_core::FencingToken;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    host_clock::{HostClock, micros},
    statements::Statements,
};
use crate::{
    LeaseRecord,
    holder::HolderInfo,
    store::{Claim, Claimed, GiveBack, GivenBack, List, Renewal, Renewed},
};

/// The rows, by the clock and the statements of their file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) clock: &'a HostClock,
    pub(super) statements: &'a Statements,
    pub(super) list: List,
}

impl Rows<'_> {
    fn boot(&self) -> &str {
        &self.clock.boot
    }

    /// How long the row's lease still lasts: `None` where it is free.
    async fn remaining(
        self,
        connection: &mut SqliteConnection,
        row: &str,
    ) -> sqlx::Result<Option<Duration>> {
        let expires_at: Option<i64> = sqlx::query_scalar(self.statements.look.clone())
            .bind(row)
            .bind(self.boot())
            .fetch_optional(connection)
            .await?
            .flatten();
        let left = expires_at.map_or(0, |at| at.saturating_sub(self.clock.now()));
        let left = u64::try_from(left).unwrap_or_default();
        Ok((left > 0).then(|| Duration::from_micros(left)))
    }

    /// Why a claim cannot be granted: somebody has its row, or is before it in line.
    pub(super) async fn obstacle(
        self,
        connection: &mut SqliteConnection,
        claim: &Claim,
    ) -> sqlx::Result<Option<Claimed>> {
        if let Some(remaining) = self.remaining(connection, &claim.row).await? {
            return Ok(Some(Claimed::Refused { remaining }));
        }
        match self.list {
            List::Queue => self.before(connection, claim).await,
            List::None | List::Listeners => Ok(None),
        }
    }

    pub(super) async fn give_back(
        self,
        connection: &mut SqliteConnection,
        item: &GiveBack,
    ) -> sqlx::Result<GivenBack> {
        let changed = sqlx::query(self.statements.give_back.clone())
            .bind(&*item.lease.row)
            .bind(&*item.lease.owner.0)
            .bind(self.boot())
            .bind(micros(item.hold_at_least))
            .bind(self.clock.now())
            .execute(connection)
            .await?;
        Ok(match changed.rows_affected() {
            0 => GivenBack::NotOurs,
            _ => GivenBack::Done,
        })
    }

    /// The caller has seen that the row is free, under the write lock; the statement looks again.
    pub(super) async fn take(
        self,
        connection: &mut SqliteConnection,
        claim: &Claim,
        holder: &HolderInfo,
    ) -> sqlx::Result<Claimed> {
        // after the write lock was given, however long that took
        let now = self.clock.now();
        let token: Option<i64> = sqlx::query_scalar(self.statements.take.clone())
            .bind(&*claim.row)
            .bind(&*claim.owner.0)
            .bind(self.boot())
            .bind(now)
            .bind(now.saturating_add(micros(claim.ttl)))
            .bind(&*holder.host)
            .bind(i64::from(holder.pid))
            .bind(claim.label.as_deref())
            .bind(claim.payload.as_deref())
            .fetch_optional(&mut *connection)
            .await?;
        if let (Some(_), Some(place)) = (token, &claim.place) {
            self.leave_row(connection, &claim.row, &place.waiter)
                .await?;
        }
        Ok(match token {
            Some(token) => Claimed::Granted(Some(FencingToken::new(token))),
            None => Claimed::Vanished,
        })
    }

    pub(super) async fn renew(
        self,
        connection: &mut SqliteConnection,
        renewal: &Renewal,
    ) -> sqlx::Result<Renewed> {
        let now = self.clock.now();
        let changed = sqlx::query(self.statements.renew.clone())
            .bind(&*renewal.lease.row)
            .bind(&*renewal.lease.owner.0)
            .bind(self.boot())
            .bind(now.saturating_add(micros(renewal.ttl)))
            .bind(now)
            .execute(&mut *connection)
            .await?;
        if changed.rows_affected() > 0 {
            return Ok(Renewed::Done);
        }
        let owner: Option<Option<String>> = sqlx::query_scalar(self.statements.owner.clone())
            .bind(&*renewal.lease.row)
            .fetch_optional(connection)
            .await?;
        Ok(match owner {
            None => Renewed::Removed,
            Some(Some(owner)) if *owner == *renewal.lease.owner.0 => Renewed::Expired,
            Some(_) => Renewed::TakenOver,
        })
    }

    /// Rows that are free and have been for long; the floor keeps their next tokens above.
    pub(super) async fn sweep(
        self,
        connection: &mut SqliteConnection,
        unused_for: Duration,
    ) -> sqlx::Result<u64> {
        let tokens: Vec<i64> = sqlx::query_scalar(self.statements.sweep.clone())
            .bind(self.boot())
            .bind(self.clock.now().saturating_sub(micros(unused_for)))
            .fetch_all(&mut *connection)
            .await?;
        if let Some(highest) = tokens.iter().max() {
            sqlx::query(self.statements.raise_floor.clone())
                .bind(highest)
                .execute(&mut *connection)
                .await?;
        }
        if self.list == List::Queue {
            self.clear_waiters(connection).await?;
        }
        Ok(tokens.len() as u64)
    }

    pub(super) async fn list(
        self,
        connection: &mut SqliteConnection,
        row: Option<&str>,
    ) -> sqlx::Result<Vec<LeaseRecord>> {
        let found = sqlx::query(self.statements.list.clone())
            .bind(self.boot())
            .bind(self.clock.now())
            .bind(row)
            .fetch_all(connection)
            .await?;
        found.iter().map(|row| self.record(row)).collect()
    }

    fn record(self, row: &SqliteRow) -> sqlx::Result<LeaseRecord> {
        let moment = |column| -> sqlx::Result<SystemTime> {
            Ok(self.clock.time_of_day(row.try_get(column)?))
        };
        Ok(LeaseRecord {
            row: row.try_get(0)?,
            token: FencingToken::new(row.try_get(1)?),
            host: row.try_get(2)?,
            pid: row.try_get(3)?,
            label: row.try_get(4)?,
            payload: row.try_get(5)?,
            acquired_at: moment(6)?,
            expires_at: moment(7)?,
        })
    }
}
