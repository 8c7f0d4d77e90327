//! Those who wait, by the clock and the statements of their file.

use std::time::Duration;

use sqlock_core::{Queued, Whose};
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{host_clock::micros, rows::Rows};
use crate::{
    holder::HolderInfo,
    store::{Claim, Claimed, Join, Leave, QueueRow},
};

/// Behind everybody who waits: the place of those who have none.
const NO_PLACE: (&str, i32, i64) = ("", -32_769, i64::MAX);

impl Rows<'_> {
    /// Writes the waiter down, or that it is alive: its ticket.
    pub(super) async fn join(
        self,
        connection: &mut SqliteConnection,
        join: &Join,
        holder: &HolderInfo,
    ) -> sqlx::Result<i64> {
        let now = self.clock.now();
        let ticket = match join.ticket {
            Some(ticket) => ticket,
            None => self.next_ticket(connection, join, now).await?,
        };
        for row in join.rows.iter() {
            sqlx::query(self.statements.join.clone())
                .bind(&**row)
                .bind(&*join.waiter)
                .bind(join.priority)
                .bind(ticket)
                .bind(&*self.clock.boot)
                .bind(now)
                .bind(now.saturating_add(micros(join.lives)))
                .bind(&*holder.host)
                .bind(i64::from(holder.pid))
                .bind(join.label.as_deref())
                .execute(&mut *connection)
                .await?;
        }
        Ok(ticket)
    }

    /// Above all that are there, and, by the clock, above all that were.
    async fn next_ticket(
        self,
        connection: &mut SqliteConnection,
        join: &Join,
        now: i64,
    ) -> sqlx::Result<i64> {
        self.clear_waiters(connection).await?;
        // it may be there, where the answer to its first join was lost
        let (own, highest): (Option<i64>, Option<i64>) =
            sqlx::query_as(self.statements.tickets.clone())
                .bind(&*join.waiter)
                .fetch_one(connection)
                .await?;
        Ok(own.unwrap_or_else(|| highest.map_or(now, |highest| now.max(highest + 1))))
    }

    /// Removes those who are taken to be dead.
    pub(super) async fn clear_waiters(self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        sqlx::query(self.statements.clear_waiters.clone())
            .bind(&*self.clock.boot)
            .bind(self.clock.now())
            .execute(connection)
            .await?;
        Ok(())
    }

    pub(super) async fn leave(
        self,
        connection: &mut SqliteConnection,
        leave: &Leave,
    ) -> sqlx::Result<()> {
        for row in leave.rows.iter() {
            self.leave_row(connection, row, &leave.waiter).await?;
        }
        Ok(())
    }

    pub(super) async fn leave_row(
        self,
        connection: &mut SqliteConnection,
        row: &str,
        waiter: &str,
    ) -> sqlx::Result<()> {
        sqlx::query(self.statements.leave.clone())
            .bind(row)
            .bind(waiter)
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Who is before the claim, where nobody has its row.
    pub(super) async fn before(
        self,
        connection: &mut SqliteConnection,
        claim: &Claim,
    ) -> sqlx::Result<Option<Claimed>> {
        let (waiter, priority, ticket) = match &claim.place {
            Some(place) => (&*place.waiter, i32::from(place.priority), place.ticket),
            None => NO_PLACE,
        };
        let now = self.clock.now();
        let last: Option<i64> = sqlx::query_scalar(self.statements.before.clone())
            .bind(&*claim.row)
            .bind(waiter)
            .bind(&*self.clock.boot)
            .bind(now)
            .bind(priority)
            .bind(ticket)
            .fetch_one(connection)
            .await?;
        Ok(last.map(|last| {
            let left = u64::try_from(last.saturating_sub(now)).unwrap_or_default();
            let remaining = Duration::from_micros(left);
            Claimed::Queued { remaining }
        }))
    }

    pub(super) async fn queue(
        self,
        connection: &mut SqliteConnection,
        row: &str,
    ) -> sqlx::Result<Vec<QueueRow>> {
        let found = sqlx::query(self.statements.queue.clone())
            .bind(row)
            .bind(&*self.clock.boot)
            .bind(self.clock.now())
            .fetch_all(connection)
            .await?;
        let places = (1..).zip(&found);
        let queue = places.map(|(place, row)| self.queued(place, row));
        queue.collect()
    }

    fn queued(self, place: u32, row: &SqliteRow) -> sqlx::Result<QueueRow> {
        let since = self.clock.time_of_day(row.try_get(5)?);
        let mut queued = Queued::new(place, row.try_get(1)?, Whose::Theirs, since);
        queued.host = row.try_get(2)?;
        queued.pid = row.try_get(3)?;
        queued.label = row.try_get(4)?;
        Ok(QueueRow {
            waiter: row.try_get(0)?,
            queued,
        })
    }
}
