//! The transactions of the lease table.
//!
//! Each is one message of the simple protocol, and so one implicit transaction, which a failure
//! midway ends ([PostgreSQL manual, 55.2.2.1]): a pooled connection is never left within one.
//!
//! The clock is looked at after the rows are locked: a statement that waits for a row and then
//! goes by a clock from before the wait could revive a lease that has run out, or give one that is
//! over already.
//!
//! [PostgreSQL manual, 55.2.2.1]: https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-MULTI-STATEMENT

use std::{fmt::Write, sync::Arc};

use super::{
    floor::Floor,
    literal::{Interval, OptionalText, Text},
    sql::{SWEPT, Sql},
    table_name::TableName,
    waiting::{Claiming, Waiters},
};
use crate::{
    holder::HolderInfo,
    store::{Claim, Exchange, GiveBack, Renewal},
};

/// A token must not go back with a crash of the server, so that its commit is waited for; and a
/// lock must be seen as it is now, not as it was when the transaction began. The role's `search_path`
/// may put somebody's `clock_timestamp` before the server's own, by which a lease could end early.
pub(super) const BEGINNING: &str = "set transaction isolation level read committed; \
                         set local synchronous_commit = on; \
                         set local search_path = pg_catalog;\n";

#[derive(Debug)]
pub(super) struct Statements {
    table: String,
    sql: Sql,
    waiters: Option<Waiters>,
}

impl Statements {
    pub(super) fn new(name: &TableName, waiters: Option<Waiters>) -> Self {
        Self {
            waiters,
            table: name.quoted(),
            sql: Sql::new(name),
        }
    }

    /// Answers with rows `(kind, index, token, microseconds)`: `b` given back and `o` still ours,
    /// `g` granted, `r` for each claim's row as it is afterwards, and `q` where somebody who waits
    /// is first. For each who joined, `w` with its ticket.
    ///
    /// A row that somebody has locked is passed over, or it would hold up all the others.
    pub(super) fn exchange(
        &self,
        exchange: &Exchange,
        holder: &HolderInfo,
        floor: Floor,
    ) -> String {
        let Exchange {
            join,
            leave,
            give_back,
            claims,
        } = exchange;
        let mut sql = BEGINNING.to_owned();
        if let Some(waiters) = &self.waiters {
            if !join.is_empty() {
                waiters.push_joins(&mut sql, join, holder);
            }
            if !leave.is_empty() {
                waiters.push_leaves(&mut sql, leave);
            }
        }
        if !give_back.is_empty() {
            self.push_give_back(&mut sql, give_back);
        }
        if !claims.is_empty() {
            self.push_claims(&mut sql, claims, holder, floor);
        }
        sql
    }

    fn push_give_back(&self, sql: &mut String, leases: &[GiveBack]) {
        let rows = query(leases.iter().enumerate(), |row, (index, item)| {
            let (name, owner) = (Text(&item.lease.row), Text(&item.lease.owner.0));
            write!(
                row,
                "{index}, {name}, {owner}, {}",
                Interval(item.hold_at_least)
            )
        });
        let (update, look) = (self.sql.give_back(&rows), self.sql.still_ours(&rows));
        push(sql, format_args!("{update};\n{look};\n"));
    }

    fn push_claims(&self, sql: &mut String, claims: &[Claim], holder: &HolderInfo, floor: Floor) {
        let names = query(claims.iter().enumerate(), |row, (index, claim)| {
            write!(row, "{index}, {}", Text(&claim.row))
        });
        let rows = query(claims.iter().enumerate(), |row, (index, claim)| {
            let (request, ttl) = (claim.request, Interval(claim.ttl));
            let (name, owner) = (Text(&claim.row), Text(&claim.owner.0));
            let label = OptionalText(claim.label.as_deref());
            let payload = OptionalText(claim.payload.as_deref());
            write!(
                row,
                "{index}, {request}, {name}, {owner}, {ttl}, {label}, {payload}"
            )
        });
        let claiming = self
            .waiters
            .as_ref()
            .map_or_else(Claiming::default, |waiters| waiters.claiming(claims));
        let (host, pid) = (Text(&holder.host), holder.pid);
        let insert = self.sql.insert_missing(&names);
        let take = self.sql.take(&rows, &host, &pid, &claiming, floor);
        let look = self.sql.as_they_are(&names);
        push(sql, format_args!("{insert};\n{take};\n{look};\n"));
        sql.push_str(&claiming.look);
    }

    /// Answers with rows `(kind, index, state)`: `d` renewed, and `s` for each row as it is
    /// afterwards: `o` ours, `e` ours and run out, `t` another's.
    pub(super) fn renew(&self, renewals: &[Renewal]) -> String {
        let rows = query(renewals.iter().enumerate(), |row, (index, renewal)| {
            let (name, owner) = (Text(&renewal.lease.row), Text(&renewal.lease.owner.0));
            write!(row, "{index}, {name}, {owner}, {}", Interval(renewal.ttl))
        });
        let (update, look) = (self.sql.renew(&rows), self.sql.whose(&rows));
        format!("{BEGINNING}{update};\n{look};\n")
    }

    pub(super) fn list(&self, row: Option<&str>) -> String {
        let table = &self.table;
        let filter = row.map_or_else(String::new, |row| format!("and name = {}", Text(row)));
        format!(
            "set local search_path = pg_catalog;
             select name, token, host, pid, label, payload,
               (extract(epoch from acquired_at) * 1000000)::bigint,
               (extract(epoch from expires_at) * 1000000)::bigint
             from {table} where owner is not null and expires_at > clock_timestamp() {filter}
             order by name"
        )
    }

    /// Nothing, where nobody is written down who waits.
    pub(super) fn wake(&self, rows: &[Arc<str>]) -> Option<String> {
        let waiters = self.waiters.as_ref()?;
        Some(waiters.wake(&self.table, rows))
    }

    pub(super) fn queue(&self, row: &str) -> Option<String> {
        Some(self.waiters.as_ref()?.queue(row))
    }

    /// Rows that are free and have been for longer than any statement lives. The highest of their
    /// tokens is kept, in the same transaction, and is where those of new rows begin. Answers with
    /// how many there were.
    pub(super) fn sweep(&self, unused_for: std::time::Duration) -> String {
        let table = &self.table;
        let unused_for = Interval(unused_for);
        let waiters = self
            .waiters
            .as_ref()
            .map_or_else(String::new, Waiters::sweep);
        format!(
            "{BEGINNING}{waiters}with d as (
               delete from {table} where name in (
                 select name from {table}
                 where (owner is null or expires_at <= clock_timestamp() - {unused_for})
                   and coalesce(acquired_at, '-infinity') <= clock_timestamp() - {unused_for}
                 order by name limit 1000 for update skip locked)
               returning token),
             f as (
               insert into {table} as t (name, token, acquired_at)
               select {SWEPT}, max(d.token), 'infinity' from d having max(d.token) is not null
               on conflict (name) do update set token = greatest(t.token, excluded.token))
             select count(*) from d"
        )
    }
}

pub(super) fn push(sql: &mut String, statement: std::fmt::Arguments<'_>) {
    // writing to a string does not fail
    sql.write_fmt(statement).ok();
}

/// A query that gives these rows.
pub(super) fn query<T>(
    items: impl Iterator<Item = T>,
    write_row: impl FnMut(&mut String, T) -> std::fmt::Result,
) -> String {
    format!("values {}", values(items, write_row))
}

/// The rows of a VALUES list.
pub(super) fn values<T>(
    items: impl Iterator<Item = T>,
    mut write_row: impl FnMut(&mut String, T) -> std::fmt::Result,
) -> String {
    let mut rows = String::new();
    for item in items {
        rows.push_str(if rows.is_empty() { "(" } else { ", (" });
        write_row(&mut rows, item).ok();
        rows.push(')');
    }
    rows
}
