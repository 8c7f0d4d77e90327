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
    literal::{Interval, OptionalText, Text},
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
const BEGINNING: &str = "set transaction isolation level read committed; \
                         set local synchronous_commit = on; \
                         set local search_path = pg_catalog;\n";

#[derive(Debug)]
pub(super) struct Statements {
    table: String,
    sequence: String,
    waiters: Option<Waiters>,
}

impl Statements {
    pub(super) fn new(name: &TableName, waiters: Option<Waiters>) -> Self {
        Self {
            waiters,
            table: name.quoted(),
            sequence: name.quoted_sequence(),
        }
    }

    /// Answers with rows `(kind, index, token, microseconds)`: `b` given back and `o` still ours,
    /// `g` granted, `r` for each claim's row as it is afterwards, and `q` where somebody who waits
    /// is first. For each who joined, `w` with its ticket.
    ///
    /// A row that somebody has locked is passed over, or it would hold up all the others.
    pub(super) fn exchange(&self, exchange: &Exchange, holder: &HolderInfo) -> String {
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
            self.push_claims(&mut sql, claims, holder);
        }
        sql
    }

    fn push_give_back(&self, sql: &mut String, leases: &[GiveBack]) {
        let table = &self.table;
        let rows = values(leases.iter().enumerate(), |row, (index, item)| {
            let (name, owner) = (Text(&item.lease.row), Text(&item.lease.owner.0));
            write!(
                row,
                "{index}, {name}, {owner}, {}",
                Interval(item.hold_at_least)
            )
        });
        push(
            sql,
            format_args!(
                "with w(i, name, owner, hold) as (values {rows}),
                 m as materialized (
                   select w.* from {table} as t join w on w.name = t.name and w.owner = t.owner
                   order by t.name for update of t skip locked),
                 n as materialized (select m.*, clock_timestamp() as now from m)
                 update {table} as t set
                   owner = case when t.acquired_at + n.hold > n.now then 'held' end,
                   expires_at = case when t.acquired_at + n.hold > n.now
                                     then t.acquired_at + n.hold end,
                   payload = null
                 from n where t.name = n.name and t.owner = n.owner
                 returning 'b', n.i, 0::bigint, 0::bigint;
                 select 'o', w.i, 0::bigint, 0::bigint from (values {rows}) as w(i, name, owner, hold)
                 join {table} as t on t.name = w.name and t.owner = w.owner;\n"
            ),
        );
    }

    fn push_claims(&self, sql: &mut String, claims: &[Claim], holder: &HolderInfo) {
        let (table, sequence) = (&self.table, &self.sequence);
        let names = values(claims.iter(), |row, claim| {
            write!(row, "{}", Text(&claim.row))
        });
        push(
            sql,
            format_args!(
                "insert into {table} (name, token)
                 select w.name, 0 from (values {names}) as w(name)
                 where not exists (select from {table} as t where t.name = w.name)
                 order by w.name on conflict (name) do nothing;\n"
            ),
        );
        let rows = values(claims.iter().enumerate(), |row, (index, claim)| {
            let (request, ttl) = (claim.request, Interval(claim.ttl));
            let (name, owner) = (Text(&claim.row), Text(&claim.owner.0));
            let label = OptionalText(claim.label.as_deref());
            let payload = OptionalText(claim.payload.as_deref());
            write!(
                row,
                "{index}, {request}, {name}, {owner}, {ttl}, {label}, {payload}"
            )
        });
        let (host, pid) = (Text(&holder.host), holder.pid);
        let Claiming {
            places,
            condition,
            departures,
            look,
        } = self
            .waiters
            .as_ref()
            .map_or_else(Claiming::default, |waiters| waiters.claiming(claims));
        // `p` looks before anything is locked, so that a refusal writes nothing
        push(
            sql,
            format_args!(
                "with w(i, request, name, owner, ttl, label, payload) as (values {rows}),
                 {places}p as materialized (
                   select w.request from w left join {table} as t on t.name = w.name {condition}
                   group by w.request
                   having bool_and(t.name is not null
                     and (t.owner is null or t.expires_at <= clock_timestamp()))),
                 m as materialized (
                   select w.*, t.owner is null or t.expires_at <= clock_timestamp() as free
                   from {table} as t join w on w.name = t.name
                   where w.request in (select request from p)
                   order by t.name for update of t skip locked),
                 n as materialized (
                   select m.*, bool_and(m.free) over (partition by m.request) as all_free,
                     count(*) over (partition by m.request) as locked,
                     clock_timestamp() as now
                   from m),
                 g as (
                   update {table} as t set
                     owner = n.owner, token = greatest(t.token + 1, nextval('{sequence_text}')),
                     acquired_at = n.now, expires_at = n.now + n.ttl,
                     host = {host}, pid = {pid}, label = n.label, payload = n.payload
                   from n where t.name = n.name and n.all_free
                     and n.locked = (select count(*) from w where w.request = n.request)
                   returning n.i, t.name, t.token){departures}
                 select 'g', g.i, g.token, 0::bigint from g;\n",
                sequence_text = sequence.replace('\'', "''"),
            ),
        );
        let names = values(claims.iter().enumerate(), |row, (index, claim)| {
            write!(row, "{index}, {}", Text(&claim.row))
        });
        push(
            sql,
            format_args!(
                "select 'r', w.i, t.token, case when t.owner is null then 0 else
                   ceil(extract(epoch from t.expires_at - clock_timestamp()) * 1000000)::bigint end
                 from (values {names}) as w(i, name) join {table} as t on t.name = w.name;\n"
            ),
        );
        sql.push_str(&look);
    }

    /// Answers with rows `(kind, index, state)`: `d` renewed, and `s` for each row as it is
    /// afterwards: `o` ours, `e` ours and run out, `t` another's.
    pub(super) fn renew(&self, renewals: &[Renewal]) -> String {
        let table = &self.table;
        let rows = values(renewals.iter().enumerate(), |row, (index, renewal)| {
            let (name, owner) = (Text(&renewal.lease.row), Text(&renewal.lease.owner.0));
            write!(row, "{index}, {name}, {owner}, {}", Interval(renewal.ttl))
        });
        let mut sql = BEGINNING.to_owned();
        push(
            &mut sql,
            format_args!(
                "with w(i, name, owner, ttl) as (values {rows}),
                 m as materialized (
                   select w.* from {table} as t join w on w.name = t.name and w.owner = t.owner
                   order by t.name for update of t skip locked),
                 n as materialized (select m.*, clock_timestamp() as now from m)
                 update {table} as t set expires_at = greatest(t.expires_at, n.now + n.ttl)
                 from n where t.name = n.name and t.owner = n.owner and t.expires_at > n.now
                 returning 'd', n.i, '';
                 with w(i, name, owner, ttl) as (values {rows})
                 select 's', w.i, case when t.owner is distinct from w.owner then 't'
                   when t.expires_at <= clock_timestamp() then 'e' else 'o' end
                 from w join {table} as t on t.name = w.name;\n"
            ),
        );
        sql
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

    /// Rows that are free and have been for longer than any statement lives. The sequence keeps
    /// the next token of the key above the last.
    pub(super) fn sweep(&self, unused_for: std::time::Duration) -> String {
        let table = &self.table;
        let unused_for = Interval(unused_for);
        let waiters = self
            .waiters
            .as_ref()
            .map_or_else(String::new, Waiters::sweep);
        format!(
            "{BEGINNING}{waiters}delete from {table} where name in (
               select name from {table}
               where (owner is null or expires_at <= clock_timestamp() - {unused_for})
                 and coalesce(acquired_at, '-infinity') <= clock_timestamp() - {unused_for}
               order by name limit 1000 for update skip locked)"
        )
    }
}

pub(super) fn push(sql: &mut String, statement: std::fmt::Arguments<'_>) {
    // writing to a string does not fail
    sql.write_fmt(statement).ok();
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
