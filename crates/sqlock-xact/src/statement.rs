//! The statements of a guard. By the simple protocol, as a transaction pooler wants it; nothing in
//! them but numbers and our own hexadecimal.

use std::fmt::Write;

use sqlock_core::{AdvisoryId, LockKey, Mode};

/// `begin_with` and not a statement of our own, so that sqlx knows of the transaction, and makes a
/// savepoint of a nested one.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// A value that only this transaction has. It is gone with the transaction, whoever ends it.
#[derive(Debug, Clone)]
pub(crate) struct Sentinel(String);

impl Sentinel {
    pub(crate) fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    /// Rows of booleans, all of them true where all keys are had.
    pub(crate) fn try_all(&self, keys: &[LockKey], mode: Mode) -> String {
        let shared = if mode == Mode::Shared { "_shared" } else { "" };
        let mut sql = format!(
            "select set_config('sqlock.guard', '{}', true) is not null union all \
             select taken from (values ",
            self.0
        );
        for (index, key) in keys.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let (low, high) = match key.id() {
                AdvisoryId::Bigint(id) => (format!("'{id}'::bigint"), String::new()),
                AdvisoryId::Pair(class, object) => {
                    (format!("'{class}'::int"), format!(", '{object}'::int"))
                }
            };
            write!(
                sql,
                "{comma}(pg_try_advisory_xact_lock{shared}({low}{high}))"
            )
            .ok();
        }
        sql.push_str(") as t(taken)");
        sql
    }

    /// Fails by a division by zero where the transaction is another, and otherwise commits. What
    /// comes after is a new and empty transaction, for sqlx to roll back.
    pub(crate) fn commit(&self) -> String {
        format!("{}; commit and chain", self.probe())
    }

    /// Fails by a division by zero where the transaction is another.
    pub(crate) fn probe(&self) -> String {
        format!(
            "select 1 / (coalesce(current_setting('sqlock.guard', true), '') = '{}')::int",
            self.0
        )
    }
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
            "select set_config('sqlock.guard', 's', true) is not null union all \
             select taken from (values \
             (pg_try_advisory_xact_lock_shared('-9223372036854775808'::bigint)), \
             (pg_try_advisory_xact_lock_shared('-1'::int, '2'::int))) as t(taken)"
        );
    }
}
