//! The statements of locks that are transactions. By the simple protocol, as a transaction pooler
//! wants it; nothing in them but numbers and our own hexadecimal.
//!
//! Functions and operators are named with their schema: a role's `search_path` may put somebody
//! else's first.

use std::fmt::Write;

use sqlock_core::{AdvisoryId, LockKey, Mode};
use sqlock_postgres::TokenSource;
use sqlx::postgres::PgRow;

/// `begin_with` and not a statement of our own, so that sqlx knows of the transaction, and makes a
/// savepoint of a nested one.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Ends the transaction, whatever savepoints are open, and leaves an empty one for sqlx to end.
pub(crate) const ROLL_BACK: &str = "rollback and chain";

/// A try's answer: the server is a standby, whose locks are its own. It was a primary before, perhaps.
pub(crate) const STANDBY: i32 = -2;
/// A try's answer: all keys are had.
pub(crate) const TAKEN: i32 = 0;

/// A value that only this transaction has. It is gone with the transaction, whoever ends it.
#[derive(Debug, Clone)]
pub(crate) struct Sentinel(String);

impl Sentinel {
    pub(crate) fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    /// One row: the sentinel's, and [`STANDBY`], [`TAKEN`], or what [`push_tries`] gives.
    pub(crate) fn try_all(&self, keys: &[LockKey], mode: Mode) -> String {
        let mut sql = format!(
            "select pg_catalog.set_config('sqlock.guard', '{}', true), case \
             when pg_catalog.pg_is_in_recovery() then {STANDBY} ",
            self.0
        );
        push_tries(&mut sql, keys, mode, 1);
        write!(sql, "else {TAKEN} end").ok();
        sql
    }

    /// The same, and with what [`TokenSource::token`] reads: drawn where all keys are had.
    pub(crate) fn try_all_with_token(
        &self,
        keys: &[LockKey],
        mode: Mode,
        tokens: &TokenSource,
    ) -> String {
        format!(
            "select s.guard, s.status, \
             case when s.status operator(pg_catalog.=) {TAKEN} then {} end, {} \
             from ({} offset 0) as s(guard, status)",
            tokens.next_token(),
            tokens.up_to(),
            self.try_all(keys, mode)
        )
    }

    /// Fails by a division by zero where the transaction is another, and otherwise commits. What
    /// comes after is a new and empty transaction, for sqlx to roll back.
    pub(crate) fn commit(&self) -> String {
        format!("{}; commit and chain", self.probe())
    }

    /// Fails by a division by zero where the transaction is another, and otherwise rolls back.
    pub(crate) fn roll_back(&self) -> String {
        format!("{}; {ROLL_BACK}", self.probe())
    }

    /// Fails by a division by zero where the transaction is another.
    pub(crate) fn probe(&self) -> String {
        format!(
            "select 1 operator(pg_catalog./) (coalesce(pg_catalog.current_setting('sqlock.guard', \
             true), '') operator(pg_catalog.=) '{}')::int",
            self.0
        )
    }
}

/// By which errors name a request.
#[allow(clippy::indexing_slicing, reason = "a request has a key at least")]
pub(crate) fn first(keys: &[LockKey]) -> &LockKey {
    &keys[0]
}

/// The one row of an answer; whatever else there is, is no answer to what was asked.
pub(crate) fn only(mut rows: Vec<PgRow>) -> sqlx::Result<PgRow> {
    match (rows.pop(), rows.len()) {
        (Some(row), 0) => Ok(row),
        (None, _) => Err(sqlx::Error::RowNotFound),
        (Some(_), others) => Err(sqlx::Error::Protocol(format!(
            "{} rows where one was asked for",
            others + 1
        ))),
    }
}

/// The branches of a CASE, each of which tries a key: the number of the first that is refused, by
/// which it ends. NULL is a refusal: only true means that a lock was had.
pub(crate) fn push_tries(sql: &mut String, keys: &[LockKey], mode: Mode, first: usize) {
    for (number, key) in (first..).zip(keys) {
        sql.push_str("when pg_catalog.pg_try_advisory_xact_lock");
        push_call(sql, key, mode);
        write!(sql, " is not true then {number} ").ok();
    }
}

/// The call that waits for a key.
pub(crate) fn push_wait(sql: &mut String, key: &LockKey, mode: Mode) {
    sql.push_str("select pg_catalog.pg_advisory_xact_lock");
    push_call(sql, key, mode);
}

/// Quoted, since the least number would be a minus and a number that is too large.
fn push_call(sql: &mut String, key: &LockKey, mode: Mode) {
    if mode == Mode::Shared {
        sql.push_str("_shared");
    }
    match key.id() {
        AdvisoryId::Bigint(id) => write!(sql, "('{id}'::bigint)").ok(),
        AdvisoryId::Pair(class, object) => write!(sql, "('{class}'::int, '{object}'::int)").ok(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_number_is_a_literal_too() {
        let keys = [
            LockKey::from_id(i64::MIN),
            LockKey::from_pair(-1, 2).unwrap(),
        ];
        let sql = Sentinel("s".to_owned()).try_all(&keys, Mode::Shared);
        assert_eq!(
            sql,
            "select pg_catalog.set_config('sqlock.guard', 's', true), case \
             when pg_catalog.pg_is_in_recovery() then -2 \
             when pg_catalog.pg_try_advisory_xact_lock_shared('-9223372036854775808'::bigint) \
             is not true then 1 \
             when pg_catalog.pg_try_advisory_xact_lock_shared('-1'::int, '2'::int) \
             is not true then 2 else 0 end"
        );
    }
}
