//! Whether advisory locks exclude, tried on two connections with a key that nobody else has.
//!
//! For engines that are not known to be PostgreSQL: some grant a lock to everybody, and only a second
//! holder shows it. Not for anything that may be behind a transaction pooler, where a session lock
//! would be left behind: the pooler look comes first.

use std::time::Duration;

use rand::Rng;
use sqlx::{PgConnection, Row};
use tokio::time::timeout;

use super::{
    LockSupport,
    ask::{ask, is_of, is_refusal, rows},
};

/// Conflicts, limits and time limits, after which the connection goes on.
const PASSING: &[&str] = &["40", "53", "55", "57014"];

/// The functions of one kind of locks, and how one is given back.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Session,
    Transaction,
}

impl Kind {
    const fn try_lock(self) -> &'static str {
        match self {
            Self::Session => "pg_catalog.pg_try_advisory_lock",
            Self::Transaction => "pg_catalog.pg_try_advisory_xact_lock",
        }
    }
}

/// Tries it, within `patience`. What the engine cannot do is told; what ends a connection is an
/// error.
pub(super) async fn self_test(
    kind: Kind,
    first: &mut PgConnection,
    second: &mut PgConnection,
    patience: Duration,
) -> sqlx::Result<LockSupport> {
    match timeout(patience, attempt(kind, first, second)).await {
        Ok(Ok(support)) => Ok(support),
        Ok(Err(error)) if is_refusal(&error) || is_of(&error, PASSING) => {
            for connection in [first, second] {
                rows(connection, "rollback").await.ok();
            }
            let reason = format!("{} failed: {error}", kind.try_lock());
            Ok(if is_refusal(&error) {
                LockSupport::Absent { reason }
            } else {
                LockSupport::Untested { reason }
            })
        }
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(LockSupport::Untested {
            reason: format!("two connections were not served within {patience:?}"),
        }),
    }
}

async fn attempt(
    kind: Kind,
    first: &mut PgConnection,
    second: &mut PgConnection,
) -> sqlx::Result<LockSupport> {
    let key: i64 = rand::rng().random();
    let has_first = taken(kind, first, key).await?;
    let has_second = taken(kind, second, key).await?;
    // the first must still be there, with its transaction, for the second's answer to say anything
    rows(first, "select 1").await?;
    let give_back = match kind {
        Kind::Session => format!("select pg_catalog.pg_advisory_unlock('{key}'::bigint)"),
        Kind::Transaction => "rollback".to_owned(),
    };
    for connection in [first, second] {
        rows(connection, &give_back).await?;
    }
    Ok(match (has_first, has_second) {
        (true, false) => LockSupport::Tested,
        (true, true) => LockSupport::Absent {
            reason: "one key was granted to two connections at once".to_owned(),
        },
        (false, _) => LockSupport::Absent {
            reason: "a key that nobody had was refused".to_owned(),
        },
    })
}

async fn taken(kind: Kind, connection: &mut PgConnection, key: i64) -> sqlx::Result<bool> {
    if let Kind::Transaction = kind {
        rows(connection, "begin").await?;
    }
    let sql = format!("select {}('{key}'::bigint)", kind.try_lock());
    // NULL is no: only true means that a lock was had
    let answer: Option<bool> = ask(connection, &sql).await?.try_get(0)?;
    Ok(answer.unwrap_or(false))
}
