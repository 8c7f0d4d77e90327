//! The statements, for a table of this name.

use std::sync::Arc;

use sqlock_core::{Error, Result};
use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

const MIGRATION: &str = include_str!("../../migrations/sqlite/0001_leases.sql");
const WAITERS_MIGRATION: &str = include_str!("../../migrations/sqlite/0002_waiters.sql");

/// Values are bound; nothing but the table's name is written into them.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(super) table: String,
    pub(super) meta_table: String,
    /// Name, boot: when the lease ends.
    pub(super) look: SqlStr,
    /// Name: its owner.
    pub(super) owner: SqlStr,
    /// Name, owner, boot, how long it stays taken, now.
    pub(super) give_back: SqlStr,
    /// Name, owner, boot, now, its end, host, pid, label, payload: the token.
    pub(super) take: SqlStr,
    /// Name, owner, boot, its end, now.
    pub(super) renew: SqlStr,
    /// Boot, now, name or null.
    pub(super) list: SqlStr,
    /// Boot, since when unused: the tokens.
    pub(super) sweep: SqlStr,
    /// At least this.
    pub(super) raise_floor: SqlStr,
    /// The clock that the file goes by.
    pub(super) clock: SqlStr,
    /// The clock, for the first who opens the file.
    pub(super) first_meta: SqlStr,
    pub(super) migration: SqlStr,
    pub(super) waiters_table: String,
    pub(super) waiters_migration: SqlStr,
    /// Name, waiter, priority, ticket, boot, now, its end, host, pid, label.
    pub(super) join: SqlStr,
    /// Waiter: its own ticket, and the highest.
    pub(super) tickets: SqlStr,
    /// Name, waiter.
    pub(super) leave: SqlStr,
    /// Boot, now.
    pub(super) clear_waiters: SqlStr,
    /// Name, waiter, boot, now, priority, ticket: when the last of those before it ends.
    pub(super) before: SqlStr,
    /// Name, boot, now.
    pub(super) queue: SqlStr,
}

impl Statements {
    pub(crate) fn new(table: &str) -> Result<Self> {
        check(table)?;
        let meta_table = format!("{table}_meta");
        let waiters_table = format!("{table}_waiters");
        let waiters = quoted(&waiters_table);
        let waiters_migration = WAITERS_MIGRATION.replace("\"sqlock_leases_waiters\"", &waiters);
        let (name, meta) = (quoted(table), quoted(&meta_table));
        let migration = MIGRATION
            .replace("\"sqlock_leases_meta\"", &meta)
            .replace("\"sqlock_leases\"", &name);
        Ok(Self {
            look: sql(format!(
                "select expires_at from {name}
                 where name = $1 and owner is not null and boot = $2"
            )),
            owner: sql(format!("select owner from {name} where name = $1")),
            give_back: sql(format!(
                "update {name} set
                   owner = case when boot = $3 and acquired_at + $4 > $5 then 'held' end,
                   expires_at = case when boot = $3 and acquired_at + $4 > $5
                     then acquired_at + $4 end,
                   payload = null
                 where name = $1 and owner = $2"
            )),
            take: sql(format!(
                "insert into {name} as t
                   (name, owner, token, boot, acquired_at, expires_at, host, pid, label, payload)
                 values ($1, $2, (select floor + 1 from {meta}), $3, $4, $5, $6, $7, $8, $9)
                 on conflict (name) do update set
                   owner = excluded.owner, token = max(t.token + 1, excluded.token),
                   boot = excluded.boot, acquired_at = excluded.acquired_at,
                   expires_at = excluded.expires_at, host = excluded.host, pid = excluded.pid,
                   label = excluded.label, payload = excluded.payload
                 where t.owner is null or t.boot is not excluded.boot
                   or t.expires_at <= excluded.acquired_at
                 returning token"
            )),
            renew: sql(format!(
                "update {name} set expires_at = max(expires_at, $4)
                 where name = $1 and owner = $2 and boot = $3 and expires_at > $5"
            )),
            list: sql(format!(
                "select name, token, host, pid, label, payload, acquired_at, expires_at from {name}
                 where owner is not null and boot = $1 and expires_at > $2
                   and ($3 is null or name = $3)
                 order by name"
            )),
            sweep: sql(format!(
                "delete from {name} where name in (
                   select name from {name}
                   where boot is not $1 or (coalesce(acquired_at, 0) <= $2
                     and (owner is null or expires_at <= $2))
                   limit 1000)
                 returning token"
            )),
            raise_floor: sql(format!("update {meta} set floor = max(floor, $1)")),
            clock: sql(format!("select clock from {meta}")),
            first_meta: sql(format!(
                "insert into {meta} (id, floor, clock)
                 select 1, coalesce(max(token), 0), $1 from {name} where true
                 on conflict do nothing"
            )),
            migration: sql(migration),
            waiters_migration: sql(waiters_migration),
            waiters_table,
            join: sql(format!(
                "insert into {waiters}
                   (name, waiter, priority, ticket, boot, since, expires_at, host, pid, label)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                 on conflict (name, waiter) do update set ticket = excluded.ticket,
                   boot = excluded.boot, expires_at = excluded.expires_at"
            )),
            tickets: sql(format!(
                "select min(ticket) filter (where waiter = $1), max(ticket) from {waiters}"
            )),
            leave: sql(format!(
                "delete from {waiters} where name = $1 and waiter = $2"
            )),
            clear_waiters: sql(format!(
                "delete from {waiters} where boot <> $1 or expires_at <= $2"
            )),
            before: sql(format!(
                "select max(expires_at) from {waiters}
                 where name = $1 and waiter <> $2 and boot = $3 and expires_at > $4
                   and (priority > $5 or (priority = $5 and ticket < $6))"
            )),
            queue: sql(format!(
                "select waiter, priority, host, pid, label, since from {waiters}
                 where name = $1 and boot = $2 and expires_at > $3
                 order by priority desc, ticket"
            )),
            table: table.to_owned(),
            meta_table,
        })
    }
}

fn check(table: &str) -> Result<()> {
    let is_reserved = table
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"));
    if (1..=200).contains(&table.len()) && !table.contains(['\0', '"']) && !is_reserved {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option: "table",
        reason: "a name has 1 to 200 bytes, no quote, no NUL character, and no `sqlite_` before it"
            .to_owned(),
    })
}

/// Of a name without quotes.
fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// Shared, so that a statement is not copied each time that it is run.
fn sql(text: String) -> SqlStr {
    AssertSqlSafe(Arc::<str>::from(text)).into_sql_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_checked() {
        let statements = Statements::new("a {name}").unwrap();
        let clock = statements.clock.as_str();
        assert_eq!(clock, "select clock from \"a {name}_meta\"");
        let migration = statements.migration.as_str();
        assert!(migration.contains("exists \"a {name}\" ("));
        assert!(!migration.contains("\"sqlock_leases"));
        for name in [
            "",
            "sqlite_stat",
            "SQLITE_x",
            "a\0b",
            "a\"",
            &"x".repeat(201),
        ] {
            assert!(Statements::new(name).is_err(), "{name}");
        }
    }
}
