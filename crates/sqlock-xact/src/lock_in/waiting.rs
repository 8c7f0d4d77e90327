use std::{fmt::Write, time::Duration};

use sqlock_core::{Deadline, LockKey, Mode};
use sqlx::{AssertSqlSafe, PgConnection, Row};
use tokio::time::Instant;

use super::Look;
use crate::{
    outcome::code,
    statement::{push_tries, push_wait},
};

/// Waits in the server for one key after the other, within one budget.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    connection: &'a mut PgConnection,
    keys: &'a [LockKey],
    mode: Mode,
    look: Look,
    deadline: Deadline,
    sent: Instant,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(
        connection: &'a mut PgConnection,
        keys: &'a [LockKey],
        mode: Mode,
        look: Look,
        deadline: Deadline,
    ) -> Self {
        Self {
            connection,
            keys,
            mode,
            look,
            deadline,
            sent: Instant::now(),
        }
    }

    /// Whether the keys are had. Where they are not, the savepoint is still there.
    ///
    /// `lock_timeout` counts anew for each key, so it is set anew: each message waits for one key,
    /// and tries those after it, up to the next that is refused.
    pub(super) async fn run(&mut self) -> sqlx::Result<bool> {
        let mut sql = String::from("savepoint sqlock; ");
        let mut next = 0;
        while let Some(key) = self.keys.get(next) {
            let Some(limit) = self.limit() else {
                return Ok(false);
            };
            write!(sql, "{}; ", lock_timeout(limit)).ok();
            push_wait(&mut sql, key, self.mode);
            let rest = self.keys.get(next + 1..).unwrap_or_default();
            if rest.is_empty() {
                sql.push_str("; ");
                break;
            }
            sql.push_str("; select case ");
            push_tries(&mut sql, rest, self.mode, next + 1);
            write!(sql, "else {} end", self.keys.len()).ok();
            next = self.wait(std::mem::take(&mut sql)).await?;
        }
        write!(
            sql,
            "{}; release savepoint sqlock",
            lock_timeout(self.look.lock_timeout)
        )
        .ok();
        self.sent = Instant::now();
        let ended = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *self.connection);
        ended.await?;
        Ok(true)
    }

    /// By the budget, or by the caller's own limit for statements. That code has a cancellation by
    /// somebody else too, which is not a limit.
    pub(super) fn is_limit(&self, error: &sqlx::Error) -> bool {
        match code(error).as_deref() {
            Some("55P03") => true,
            Some("57014") => {
                let limit = u64::try_from(self.look.statement_timeout).unwrap_or(0);
                limit > 0 && self.sent.elapsed() >= Duration::from_millis(limit)
            }
            _ => false,
        }
    }

    async fn wait(&mut self, sql: String) -> sqlx::Result<usize> {
        self.sent = Instant::now();
        let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut *self.connection);
        let rows = rows.await?;
        let next: i32 = rows.last().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?;
        usize::try_from(next).map_err(|error| sqlx::Error::Decode(error.into()))
    }

    /// What is left of the budget, as `lock_timeout` has it; `None` where that is nothing.
    fn limit(&self) -> Option<i64> {
        match self.deadline.remaining() {
            None => Some(0),
            Some(Duration::ZERO) => None,
            Some(left) => {
                let milliseconds = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
                Some(i64::from(milliseconds.max(1)))
            }
        }
    }
}

/// Until the transaction ends; a roll-back to the savepoint takes it back.
fn lock_timeout(milliseconds: i64) -> String {
    format!("select pg_catalog.set_config('lock_timeout', '{milliseconds}', true)")
}
