//! Who holds a lock.

use std::time::{Duration, SystemTime};

use sqlock_core::{AdvisoryId, Error, Holder, LockKey, Mode, Result};
use sqlock_postgres::Failure;
use sqlx::{Row, postgres::PgListener};
use tokio::time::timeout;

use crate::{BACKEND, server_lock::OnServer};

/// Asks `pg_locks`, which costs more the more locks there are: not for hot paths.
pub(crate) async fn holders(
    listener: &mut PgListener,
    key: &LockKey,
    limit: Duration,
) -> Result<Vec<Holder>> {
    let Ok(answer) = timeout(limit, look(listener, key.id())).await else {
        return Err(Error::Unavailable {
            backend: BACKEND,
            source: format!("no answer within {limit:?}").into(),
        });
    };
    answer.map_err(|error| Failure::of(error).error(BACKEND, "inspect"))
}

async fn look(listener: &mut PgListener, id: AdvisoryId) -> sqlx::Result<Vec<Holder>> {
    let (packed, kind): (i64, i16) = match id {
        AdvisoryId::Bigint(id) => (id, 1),
        AdvisoryId::Pair(..) => (id.packed(), 2),
    };
    let rows = sqlx::query(
        "select l.mode = 'ShareLock', a.application_name, host(a.client_addr), l.pid::bigint, \
                extract(epoch from clock_timestamp() - a.backend_start)::float8 \
         from pg_locks as l left join pg_stat_activity as a on a.pid = l.pid \
         where l.locktype = 'advisory' and l.granted and l.objsubid = $2 \
           and l.classid::bigint = ($1 >> 32 & 4294967295) \
           and l.objid::bigint = ($1 & 4294967295) \
           and l.database = (select oid from pg_database where datname = current_database()) \
         order by a.backend_start, l.pid",
    )
    .bind(packed)
    .bind(kind)
    .fetch_all(listener)
    .await?;
    rows.iter()
        .map(|row| {
            let mode = if row.try_get(0)? {
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
        })
        .collect()
}
