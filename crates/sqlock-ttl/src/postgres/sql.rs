//! What is asked of the table, by whichever protocol.
//!
//! `rows` is a query that gives the rows that a statement is about: literals, or parameters.
//! Answers to exchanges have the columns `(kind, index, token, microseconds)`, answers to renewals
//! `(kind, index, state)`.

use std::fmt::Display;

use super::{floor::Floor, table_name::TableName, waiting::Claiming};

/// The row whose token is the highest of those that were swept, of a name that no key has. Nobody
/// takes it, and its time says that no sweep does either.
pub(super) const SWEPT: &str = "''";

#[derive(Debug)]
pub(super) struct Sql {
    table: String,
    sequence: String,
}

impl Sql {
    pub(super) fn new(name: &TableName) -> Self {
        Self {
            table: name.quoted(),
            sequence: name.quoted_sequence().replace('\'', "''"),
        }
    }

    /// `b` for each that was given back.
    pub(super) fn give_back(&self, rows: &str) -> String {
        let table = &self.table;
        format!(
            "with w(i, name, owner, hold) as ({rows}),
             m as materialized (
               select w.* from {table} as t join w on w.name = t.name and w.owner = t.owner
               order by t.name for update of t skip locked),
             n as materialized (select m.*, clock_timestamp() as now from m),
             g as (
               update {table} as t set
                 owner = case when t.acquired_at + n.hold > n.now then 'held' end,
                 expires_at = case when t.acquired_at + n.hold > n.now
                                   then t.acquired_at + n.hold end,
                 payload = null
               from n where t.name = n.name and t.owner = n.owner
               returning n.i)
             select 'b', g.i, 0::bigint, 0::bigint from g"
        )
    }

    /// `o` for each that is ours, and was not given back since somebody has its row locked.
    pub(super) fn still_ours(&self, rows: &str) -> String {
        let table = &self.table;
        format!(
            "select 'o', w.i, 0::bigint, 0::bigint from ({rows}) as w(i, name, owner, hold)
             join {table} as t on t.name = w.name and t.owner = w.owner"
        )
    }

    /// Rows for keys that have none yet, or none any more: with the token of those that were swept.
    pub(super) fn insert_missing(&self, names: &str) -> String {
        let table = &self.table;
        format!(
            "insert into {table} (name, token)
             select w.name, coalesce((select f.token from {table} as f where f.name = {SWEPT}), 0)
             from ({names}) as w(i, name)
             where not exists (select from {table} as t where t.name = w.name)
             order by w.name on conflict (name) do nothing"
        )
    }

    /// `g` for each that was taken, with its token.
    ///
    /// `p` looks before anything is locked, so that a refusal writes nothing.
    pub(super) fn take(
        &self,
        rows: &str,
        host: &dyn Display,
        pid: &dyn Display,
        claiming: &Claiming,
        floor: Floor,
    ) -> String {
        let Self { table, sequence } = self;
        let floor = floor.sql("t.token", "n.now");
        let Claiming {
            places,
            condition,
            departures,
            ..
        } = claiming;
        format!(
            "with w(i, request, name, owner, ttl, label, payload) as ({rows}),
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
                 owner = n.owner, token = greatest(t.token + 1, nextval('{sequence}'), {floor}),
                 acquired_at = n.now, expires_at = n.now + n.ttl,
                 host = {host}, pid = {pid}, label = n.label, payload = n.payload
               from n where t.name = n.name and n.all_free
                 and n.locked = (select count(*) from w where w.request = n.request)
               returning n.i, t.name, t.token){departures}
             select 'g', g.i, g.token, 0::bigint from g"
        )
    }

    /// `r` for each row that there is, and how long it is taken.
    pub(super) fn as_they_are(&self, names: &str) -> String {
        let table = &self.table;
        format!(
            "select 'r', w.i, t.token, case when t.owner is null then 0 else
               ceil(extract(epoch from t.expires_at - clock_timestamp()) * 1000000)::bigint end
             from ({names}) as w(i, name) join {table} as t on t.name = w.name"
        )
    }

    /// `d` for each that was renewed. The row's end is never moved to an earlier time: until the
    /// answer comes, its holder believes in the later one.
    pub(super) fn renew(&self, rows: &str) -> String {
        let table = &self.table;
        format!(
            "with w(i, name, owner, ttl) as ({rows}),
             m as materialized (
               select w.* from {table} as t join w on w.name = t.name and w.owner = t.owner
               order by t.name for update of t skip locked),
             n as materialized (select m.*, clock_timestamp() as now from m),
             g as (
               update {table} as t set expires_at = greatest(t.expires_at, n.now + n.ttl)
               from n where t.name = n.name and t.owner = n.owner and t.expires_at > n.now
               returning n.i)
             select 'd', g.i, '' from g"
        )
    }

    /// `s` for each row that there is: `o` ours, `e` ours and run out, `t` another's.
    pub(super) fn whose(&self, rows: &str) -> String {
        let table = &self.table;
        format!(
            "select 's', w.i, case when t.owner is distinct from w.owner then 't'
               when t.expires_at <= clock_timestamp() then 'e' else 'o' end
             from ({rows}) as w(i, name, owner, ttl) join {table} as t on t.name = w.name"
        )
    }
}
