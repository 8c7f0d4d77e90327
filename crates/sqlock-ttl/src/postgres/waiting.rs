//! The statements for those who wait.
//!
//! A waiter is a row for each key that it waits for. Its ticket says when it came, and stays its
//! own: a waiter whose row was lost, by a crash, or because it was paused for longer than it was
//! taken to be alive, comes back to its place.

use std::{fmt::Write, sync::Arc};

use super::{
    literal::{Interval, OptionalText, Text},
    statements::{push, values},
};
use crate::{
    holder::HolderInfo,
    store::{Claim, Hearing, Join, Leave, row_hash},
};

/// The channel. Its payload is the hash of a row's name, as names are not for everybody.
pub(super) const CHANNEL: &str = "sqlock_leases";

/// A commit that notifies waits for those of others that do, and one of them can be stuck. Those
/// who wait have their polls.
const NOTIFY_LIMIT: &str = "set local search_path = pg_catalog; \
                            set local lock_timeout = '250ms';\n";

/// Below every priority, and behind every ticket: the place of those who have none.
const NO_PLACE: (i32, i64) = (-32_769, i64::MAX);

/// Who is first by `q` and `z`, two rows with priority and ticket.
const IS_BEFORE: &str = "q.waiter <> z.waiter and q.expires_at > clock_timestamp()
     and (q.priority > z.priority or (q.priority = z.priority and q.ticket < z.ticket))";

/// The table of those who wait.
#[derive(Debug)]
pub(super) struct Waiters {
    /// Quoted, as that of the sequence.
    pub(super) table: String,
    pub(super) sequence: String,
    pub(super) order: Order,
}

/// Whether those who wait are served in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Any,
    Queue,
}

/// What a claim looks at beside the leases.
#[derive(Debug, Default)]
pub(super) struct Claiming {
    /// Common table expressions.
    pub(super) places: String,
    /// A condition for the requests of `w`.
    pub(super) condition: &'static str,
    /// A common table expression over `g`, the rows that were granted.
    pub(super) departures: String,
    /// A statement of its own.
    pub(super) look: String,
}

impl Waiters {
    /// Answers with a row `w` for each waiter, with its ticket.
    pub(super) fn push_joins(&self, sql: &mut String, joins: &[Join], holder: &HolderInfo) {
        let (table, sequence) = (&self.table, self.sequence.replace('\'', "''"));
        if joins.iter().any(|join| join.ticket.is_none()) {
            self.push_clearing(sql, joins);
        }
        let waiters = values(joins.iter().enumerate(), |row, (index, join)| {
            let (waiter, priority, lives) = (Text(&join.waiter), join.priority, join.lives);
            let listens = join.hearing == Hearing::Listening;
            let label = OptionalText(join.label.as_deref());
            write!(row, "{index}, {waiter}, {priority}, ")?;
            match join.ticket {
                Some(ticket) => write!(row, "{ticket}::bigint")?,
                None => row.write_str("null::bigint")?,
            }
            write!(row, ", {}, {listens}, {label}", Interval(lives))
        });
        let places = joins.iter().enumerate();
        let places = places.flat_map(|(index, join)| join.rows.iter().map(move |row| (index, row)));
        let places = values(places, |row, (index, name)| {
            write!(row, "{index}, {}", Text(name))
        });
        let (host, pid) = (Text(&holder.host), holder.pid);
        // of one waiter all rows get the same ticket, or two of them could wait for each other
        push(
            sql,
            format_args!(
                "with w(r, waiter, priority, ticket, lives, listens, label) as (values {waiters}),
                 k(r, name) as (values {places}),
                 o as materialized (
                   select w.r, w.ticket, (select min(q.ticket) from k join {table} as q
                     on q.name = k.name and q.waiter = w.waiter where k.r = w.r) as before
                   from w order by w.r),
                 n as materialized (
                   select o.r, coalesce(o.ticket, o.before, nextval('{sequence}')) as ticket from o)
                 insert into {table} as q
                   (name, waiter, priority, ticket, since, expires_at, listens, host, pid, label)
                 select k.name, w.waiter, w.priority, n.ticket, clock_timestamp(),
                   clock_timestamp() + w.lives, w.listens, {host}, {pid}, w.label
                 from k join w on w.r = k.r join n on n.r = k.r
                 order by k.name, w.waiter
                 on conflict (name, waiter) do update set ticket = excluded.ticket,
                   expires_at = excluded.expires_at, listens = excluded.listens;\n"
            ),
        );
        let firsts = values(joins.iter().enumerate(), |row, (index, join)| {
            let first = join.rows.first().map_or("", |row| row);
            write!(row, "{index}, {}, {}", Text(&join.waiter), Text(first))
        });
        push(
            sql,
            format_args!(
                "select 'w', f.i, q.ticket, 0::bigint from (values {firsts}) as f(i, waiter, name)
                 join {table} as q on q.name = f.name and q.waiter = f.waiter;\n"
            ),
        );
    }

    /// Removes those who are taken to be dead, of the same keys.
    fn push_clearing(&self, sql: &mut String, joins: &[Join]) {
        let table = &self.table;
        let names = values(
            joins.iter().flat_map(|join| join.rows.iter()),
            |row, name| write!(row, "{}", Text(name)),
        );
        push(
            sql,
            format_args!(
                "with d as materialized (
                   select q.name, q.waiter from {table} as q
                   where q.name in (select name from (values {names}) as w(name))
                     and q.expires_at <= clock_timestamp()
                   for update of q skip locked)
                 delete from {table} as q using d where q.name = d.name and q.waiter = d.waiter;\n"
            ),
        );
    }

    pub(super) fn push_leaves(&self, sql: &mut String, leaves: &[Leave]) {
        let table = &self.table;
        let places = leaves
            .iter()
            .flat_map(|leave| leave.rows.iter().map(move |row| (row, &leave.waiter)));
        let places = values(places, |row, (name, waiter)| {
            write!(row, "{}, {}", Text(name), Text(waiter))
        });
        push(
            sql,
            format_args!(
                "delete from {table} as q using (values {places}) as w(name, waiter)
                 where q.name = w.name and q.waiter = w.waiter;\n"
            ),
        );
    }

    pub(super) fn claiming(&self, claims: &[Claim]) -> Claiming {
        let mut claiming = Claiming::default();
        let table = &self.table;
        let is_queue = self.order == Order::Queue;
        if !is_queue && claims.iter().all(|claim| claim.place.is_none()) {
            return claiming;
        }
        let places = values(claims.iter().enumerate(), |row, (index, claim)| {
            let (waiter, (priority, ticket)) = match &claim.place {
                Some(place) => (&*place.waiter, (i32::from(place.priority), place.ticket)),
                None => ("", NO_PLACE),
            };
            let waiter = Text(waiter);
            write!(row, "{index}, {waiter}, {priority}, {ticket}::bigint")
        });
        claiming.places = format!("z(i, waiter, priority, ticket) as (values {places}),\n");
        claiming.departures = format!(
            ",\nl as (delete from {table} as q using g join z on z.i = g.i
                where q.name = g.name and q.waiter = z.waiter)"
        );
        if !is_queue {
            return claiming;
        }
        write!(
            claiming.places,
            "a as materialized (
               select w.request from w join z on z.i = w.i join {table} as q on q.name = w.name
               where {IS_BEFORE}),\n"
        )
        .ok();
        claiming.condition = "where w.request not in (select a.request from a)";
        let names = values(claims.iter().enumerate(), |row, (index, claim)| {
            write!(row, "{index}, {}", Text(&claim.row))
        });
        claiming.look = format!(
            "with {places}w(i, name) as (values {names})
             select 'q', w.i, 0::bigint,
               ceil(extract(epoch from max(q.expires_at) - clock_timestamp()) * 1000000)::bigint
             from w join z on z.i = w.i join {table} as q on q.name = w.name
             where {IS_BEFORE} group by w.i;\n",
            places = format_args!("z(i, waiter, priority, ticket) as (values {places}), "),
        );
        claiming
    }

    /// Wakes those who listen for rows that are free.
    pub(super) fn wake(&self, leases: &str, rows: &[Arc<str>]) -> String {
        let table = &self.table;
        let rows = values(rows.iter(), |sql, row| {
            write!(sql, "{}, '{:016x}'", Text(row), row_hash(row))
        });
        format!(
            "{NOTIFY_LIMIT}select pg_notify('{CHANNEL}', w.hash)::text
             from (values {rows}) as w(name, hash)
             where exists (select from {table} as q where q.name = w.name and q.listens
                 and q.expires_at > clock_timestamp())
               and not exists (select from {leases} as t where t.name = w.name
                 and t.owner is not null and t.expires_at > clock_timestamp())"
        )
    }

    /// Answers with rows `(waiter, priority, host, pid, label, since)`.
    pub(super) fn queue(&self, row: &str) -> String {
        let (table, row) = (&self.table, Text(row));
        format!(
            "set local search_path = pg_catalog;
             select waiter, priority, host, pid, label,
               (extract(epoch from since) * 1000000)::bigint
             from {table} where name = {row} and expires_at > clock_timestamp()
             order by priority desc, ticket"
        )
    }

    /// Removes those who are taken to be dead.
    pub(super) fn sweep(&self) -> String {
        let table = &self.table;
        format!(
            "with d as materialized (
               select q.name, q.waiter from {table} as q
               where q.expires_at <= clock_timestamp() limit 1000 for update of q skip locked)
             delete from {table} as q using d where q.name = d.name and q.waiter = d.waiter;\n"
        )
    }
}
