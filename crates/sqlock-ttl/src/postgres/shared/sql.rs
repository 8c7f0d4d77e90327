use std::fmt::Write as _;

use super::super::{
    literal::{Interval, Text, quoted_identifier},
    statements::{BEGINNING, query},
    table_name::TableName,
};
use crate::store::{Claim, Exchange, GiveBack, Renewal};

/// What others have called the columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) name: &'static str,
    pub(crate) owner: &'static str,
    pub(crate) end: &'static str,
    /// When it was taken, where that is written.
    pub(crate) since: Option<&'static str>,
    /// What gives the time as these columns have it.
    pub(crate) now: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) struct SharedSql {
    table: String,
    name: String,
    owner: String,
    end: String,
    since: Option<String>,
    now: &'static str,
}

impl SharedSql {
    pub(crate) fn new(table: &TableName, columns: Columns) -> Self {
        Self {
            table: table.quoted(),
            name: quoted_identifier(columns.name),
            owner: quoted_identifier(columns.owner),
            end: quoted_identifier(columns.end),
            since: columns.since.map(quoted_identifier),
            now: columns.now,
        }
    }

    /// Answers as the exchanges with a table of our own do, with tokens that mean nothing.
    pub(super) fn exchange(&self, exchange: &Exchange) -> String {
        let mut sql = BEGINNING.to_owned();
        if !exchange.give_back.is_empty() {
            sql += &self.give_back(&exchange.give_back);
        }
        if !exchange.claims.is_empty() {
            sql += &self.claim(&exchange.claims);
        }
        sql
    }

    /// The row stays, with an end that is now: a peer may only ever update it.
    fn give_back(&self, leases: &[GiveBack]) -> String {
        let Self {
            table,
            name,
            owner,
            end,
            now,
            ..
        } = self;
        let rows = query(leases.iter().enumerate(), |row, (index, item)| {
            let (name, owner) = (Text(&item.lease.row), Text(&item.lease.owner.0));
            let hold = Interval(item.hold_on);
            write!(row, "{index}, {name}, {owner}, {hold}")
        });
        format!(
            "with w(i, name, owner, hold) as ({rows}),
             m as materialized (
               select w.* from {table} as t join w on w.name = t.{name} and w.owner = t.{owner}
               order by t.{name} for update of t skip locked),
             g as (
               update {table} as t set {end} = {now} + m.hold
               from m where t.{name} = m.name and t.{owner} = m.owner
               returning m.i)
             select 'b', g.i, 0::bigint, 0::bigint from g
             union all
             select 'o', w.i, 0::bigint, 0::bigint
             from w join {table} as t on t.{name} = w.name and t.{owner} = w.owner
             where w.i not in (select g.i from g);\n"
        )
    }

    /// A row that is missing is made with an end that is now, and taken as one that has run out:
    /// all rows of a request, or none.
    fn claim(&self, claims: &[Claim]) -> String {
        let Self {
            table,
            name,
            owner,
            end,
            now,
            ..
        } = self;
        let rows = query(claims.iter().enumerate(), |row, (index, claim)| {
            let (name, owner) = (Text(&claim.row), Text(&claim.owner.0));
            let (request, ttl) = (claim.request, Interval(claim.ttl));
            write!(row, "{index}, {request}, {name}, {owner}, {ttl}")
        });
        let (mut columns, mut values) = (format!("{name}, {owner}, {end}"), now.to_string());
        let mut set_since = String::new();
        if let Some(since) = &self.since {
            write!(columns, ", {since}").ok();
            write!(values, ", {now}").ok();
            write!(set_since, ", {since} = n.now").ok();
        }
        format!(
            "insert into {table} ({columns})
             select w.name, w.owner, {values} from ({rows}) as w(i, request, name, owner, ttl)
             where not exists (select from {table} as t where t.{name} = w.name)
             order by w.name on conflict ({name}) do nothing;
             with w(i, request, name, owner, ttl) as ({rows}),
             p as materialized (
               select w.request from w left join {table} as t on t.{name} = w.name
               group by w.request
               having bool_and(coalesce(t.{end} <= {now}, false))),
             m as materialized (
               select w.*, coalesce(t.{end} <= {now}, false) as free
               from {table} as t join w on w.name = t.{name}
               where w.request in (select request from p)
               order by t.{name} for update of t skip locked),
             n as materialized (
               select m.*, bool_and(m.free) over (partition by m.request) as all_free,
                 count(*) over (partition by m.request) as locked, {now} as now
               from m),
             g as (
               update {table} as t set {owner} = n.owner, {end} = n.now + n.ttl{set_since}
               from n where t.{name} = n.name and n.all_free
                 and n.locked = (select count(*) from w where w.request = n.request)
               returning n.i)
             select 'g', g.i, 0::bigint, 0::bigint from g;
             select 'r', w.i, 0::bigint, greatest(0, coalesce(
               ceil(extract(epoch from t.{end} - {now}) * 1000000)::bigint, 86400000000))
             from ({rows}) as w(i, request, name, owner, ttl)
             join {table} as t on t.{name} = w.name;\n"
        )
    }

    /// As a renewal of a table of our own.
    pub(super) fn renew(&self, renewals: &[Renewal]) -> String {
        let Self {
            table,
            name,
            owner,
            end,
            now,
            ..
        } = self;
        let rows = query(renewals.iter().enumerate(), |row, (index, renewal)| {
            let (name, owner) = (Text(&renewal.lease.row), Text(&renewal.lease.owner.0));
            write!(row, "{index}, {name}, {owner}, {}", Interval(renewal.ttl))
        });
        format!(
            "{BEGINNING}with w(i, name, owner, ttl) as ({rows}),
             m as materialized (
               select w.* from {table} as t join w on w.name = t.{name} and w.owner = t.{owner}
               order by t.{name} for update of t skip locked),
             n as materialized (select m.*, {now} as now from m)
             update {table} as t set {end} = greatest(t.{end}, n.now + n.ttl)
             from n where t.{name} = n.name and t.{owner} = n.owner and t.{end} > n.now
             returning 'd', n.i, '';
             select 's', w.i, case when t.{owner} is distinct from w.owner then 't'
               when t.{end} <= {now} then 'e' else 'o' end
             from ({rows}) as w(i, name, owner, ttl) join {table} as t on t.{name} = w.name;\n"
        )
    }
}
