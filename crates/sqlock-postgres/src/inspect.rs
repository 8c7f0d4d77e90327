use std::time::{Duration, SystemTime};

use sqlock_core::{AdvisoryId, Holder, Mode};
use sqlx::{AssertSqlSafe, Executor, Postgres, Row, postgres::PgRow};

/// Those who hold this advisory lock in the current database.
///
/// By the simple protocol, so that it works through any pooler. It asks `pg_locks`, which costs
/// more the more locks there are: not for hot paths. By full names, since a role's `search_path` may
/// put somebody's own functions and operators first.
///
/// # Errors
///
/// Those of the connection.
pub async fn holders<'c>(
    connection: impl Executor<'c, Database = Postgres>,
    id: AdvisoryId,
) -> sqlx::Result<Vec<Holder>> {
    let (class, object, kind) = as_pg_locks_has_it(id);
    let sql = format!(
        "select l.mode, a.application_name, pg_catalog.host(a.client_addr), l.pid::bigint, \
                extract(epoch from pg_catalog.clock_timestamp() \
                        operator(pg_catalog.-) a.backend_start)::float8 \
         from pg_catalog.pg_locks as l \
         left join pg_catalog.pg_stat_activity as a on a.pid operator(pg_catalog.=) l.pid \
         where l.locktype operator(pg_catalog.=) 'advisory' and l.granted \
           and l.objsubid operator(pg_catalog.=) {kind}::smallint \
           and l.classid::bigint operator(pg_catalog.=) {class}::bigint \
           and l.objid::bigint operator(pg_catalog.=) {object}::bigint \
           and l.database operator(pg_catalog.=) \
               (select d.oid from pg_catalog.pg_database as d \
                where d.datname operator(pg_catalog.=) pg_catalog.current_database()) \
         order by a.backend_start, l.pid"
    );
    // nothing in it but numbers
    let rows = connection
        .fetch_all(sqlx::raw_sql(AssertSqlSafe(sql)))
        .await?;
    rows.iter().map(holder).collect()
}

fn holder(row: &PgRow) -> sqlx::Result<Holder> {
    let mode = if row.try_get::<&str, _>(0)? == "ShareLock" {
        Mode::Shared
    } else {
        Mode::Exclusive
    };
    let mut holder = Holder::unknown(mode);
    let label: Option<String> = row.try_get(1)?;
    holder.label = label.filter(|label| !label.is_empty());
    holder.host = row.try_get(2)?;
    holder.pid = row.try_get(3)?;
    let age: Option<f64> = row.try_get(4)?;
    holder.since = age
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .and_then(|age| SystemTime::now().checked_sub(age));
    Ok(holder)
}

/// Both halves are unsigned there, and the third number tells a `bigint` from a pair ([PostgreSQL
/// manual, 54.12](https://www.postgresql.org/docs/current/view-pg-locks.html)).
fn as_pg_locks_has_it(id: AdvisoryId) -> (u32, u32, i16) {
    match id {
        AdvisoryId::Bigint(id) => {
            let [a, b, c, d, e, f, g, h] = id.to_be_bytes();
            (
                u32::from_be_bytes([a, b, c, d]),
                u32::from_be_bytes([e, f, g, h]),
                1,
            )
        }
        AdvisoryId::Pair(class, object) => (class.cast_unsigned(), object.cast_unsigned(), 2),
    }
}
