use sqlock_core::{Error, LockKey, Mode, Result};
use sqlx::{Row, postgres::PgRow};

use super::UNDO;
use crate::statement::{STANDBY, TAKEN, push_tries};

const STALE: i32 = -1;

/// What the transaction may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Snapshot {
    /// Each statement sees what was committed before it.
    OfEachStatement,
    /// All of them may see what was committed before the lock was had.
    MayBeOlder,
}

/// What a try found: whether the keys were free, and the limits that the caller has set.
#[derive(Debug)]
pub(super) struct Look {
    status: i32,
    level: String,
    /// In milliseconds; 0 is none.
    pub(super) lock_timeout: i64,
    pub(super) statement_timeout: i64,
}

impl Look {
    /// A savepoint comes first: outside of a transaction it is an error, and what fails after it can
    /// be undone. One key leaves nothing to undo where it is refused.
    pub(super) fn statement(keys: &[LockKey], mode: Mode, snapshot: Snapshot) -> String {
        let level = "pg_catalog.current_setting('transaction_isolation')";
        let mut sql = format!(
            "savepoint sqlock; select case \
             when pg_catalog.pg_is_in_recovery() then {STANDBY} "
        );
        if snapshot == Snapshot::OfEachStatement {
            sql.push_str(&format!(
                "when {level} operator(pg_catalog.<>) \
                 all (array['read committed', 'read uncommitted']) then {STALE} "
            ));
        }
        push_tries(&mut sql, keys, mode, 1);
        sql.push_str(&format!("else {TAKEN} end, {level}"));
        for setting in ["lock_timeout", "statement_timeout"] {
            sql.push_str(&format!(
                ", (extract(epoch from pg_catalog.current_setting('{setting}')::interval) \
                 operator(pg_catalog.*) 1000)::bigint"
            ));
        }
        if keys.len() == 1 {
            sql.push_str("; release savepoint sqlock");
        }
        sql
    }

    pub(super) fn of(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            status: row.try_get(0)?,
            level: row.try_get(1)?,
            lock_timeout: row.try_get(2)?,
            statement_timeout: row.try_get(3)?,
        })
    }

    pub(super) fn is_taken(&self) -> bool {
        self.status == TAKEN
    }

    /// What is to be sent after [`statement`](Self::statement).
    pub(super) fn end(&self, keys: &[LockKey]) -> Option<&'static str> {
        if keys.len() == 1 {
            None
        } else if self.is_taken() {
            Some("release savepoint sqlock")
        } else {
            Some(UNDO)
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.status {
            STANDBY => Err(Error::Standby),
            STALE => Err(Error::StaleSnapshot {
                level: self.level.clone(),
            }),
            _ => Ok(()),
        }
    }
}
