//! What is there, and whether it is as it should be.

use sqlock_core::FencingFault;
use sqlx::{AssertSqlSafe, Executor, Postgres, Row};

use super::{
    TokenKind,
    names::{Literal, Names},
};

/// What the server says of the tables and the sequence.
#[derive(Debug)]
pub(super) struct Look {
    names: Names,
    durable: Object,
    now: Object,
    sequence: Object,
    /// `server_version_num`
    pub(super) version: i32,
}

/// `relkind` and `relpersistence`, and columns with their types; none where it is not there.
#[derive(Debug)]
struct Object(Option<(String, Vec<String>)>);

const DURABLE: [&str; 2] = ["only_row boolean", "reserved bigint"];
const NOW: [&str; 5] = [
    "only_row boolean",
    "base bigint",
    "up_to bigint",
    "started timestamp with time zone",
    "relation oid",
];

impl Look {
    /// In one round trip of the simple protocol.
    pub(super) async fn take<'c>(
        connection: impl Executor<'c, Database = Postgres>,
        names: &Names,
    ) -> sqlx::Result<Self> {
        let [durable, now, sequence] = [(1, &names.durable), (2, &names.now), (3, &names.sequence)]
            .map(|(i, name)| format!("({i}, {})", Literal(name)));
        // nothing in it but names, quoted
        let sql = format!(
            "set local search_path = pg_catalog;
             select c.relkind::text || c.relpersistence::text,
               (select array_agg(a.attname || ' ' || format_type(a.atttypid, null))
                from pg_attribute as a
                where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
               current_setting('server_version_num')::int
             from (values {durable}, {now}, {sequence}) as w(i, name)
             left join pg_class as c on c.oid = to_regclass(w.name) order by w.i"
        );
        let rows = connection
            .fetch_all(sqlx::raw_sql(AssertSqlSafe(sql)))
            .await?;
        let object = |index: usize| -> sqlx::Result<Object> {
            let row = rows.get(index).ok_or(sqlx::Error::RowNotFound)?;
            let kind: Option<String> = row.try_get(0)?;
            let columns: Option<Vec<String>> = row.try_get(1)?;
            Ok(Object(kind.map(|kind| (kind, columns.unwrap_or_default()))))
        };
        Ok(Self {
            names: names.clone(),
            durable: object(0)?,
            now: object(1)?,
            sequence: object(2)?,
            version: rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(2)?,
        })
    }

    /// Nothing is there.
    pub(super) fn is_empty(&self) -> bool {
        self.durable.0.is_none() && self.now.0.is_none() && self.sequence.0.is_none()
    }

    /// How tokens are drawn here, or what is wrong.
    pub(super) fn kind(&self) -> Result<TokenKind, FencingFault> {
        let names = &self.names;
        self.durable.check(&names.durable, 'r', 'p', &DURABLE)?;
        if self.now.0.is_none() && self.sequence.0.is_none() {
            return Ok(TokenKind::Row);
        }
        self.now.check(&names.now, 'r', 'u', &NOW)?;
        self.sequence.check(&names.sequence, 'S', 'u', &[])?;
        Ok(TokenKind::Sequence)
    }
}

impl Object {
    fn check(
        &self,
        name: &str,
        kind: char,
        persistence: char,
        columns: &[&str],
    ) -> Result<(), FencingFault> {
        let object = || name.to_owned();
        let Some((found_kind, found)) = &self.0 else {
            return Err(FencingFault::Missing { object: object() });
        };
        let shape = |difference| FencingFault::Shape {
            object: object(),
            difference,
        };
        if !found_kind.starts_with(kind) {
            let wanted = if kind == 'S' { "a sequence" } else { "a table" };
            return Err(shape(format!("it must be {wanted}")));
        }
        if !found_kind.ends_with(persistence) {
            let wanted = if persistence == 'u' {
                "unlogged"
            } else {
                "logged"
            };
            return Err(shape(format!("it must be {wanted}")));
        }
        for column in columns {
            if !found.iter().any(|found| found == column) {
                let (name, kind) = column.split_once(' ').unwrap_or((column, ""));
                return Err(shape(format!("it has no column {name} ({kind})")));
            }
        }
        Ok(())
    }
}
