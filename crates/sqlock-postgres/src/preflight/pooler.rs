//! What is between here and the server.

use std::time::Duration;

use sqlx::{PgConnection, postgres::PgConnectOptions};
use tokio::time::timeout;

use super::{
    Pooler, ServerProcess,
    ask::{if_known, is_of},
    connection::connect,
    process::process,
    rounds::{ROUNDS, Rounds, Seen, Side},
};

/// What a look brought, and the second connection where there is one.
pub(super) struct Looked {
    pub(super) pooler: Pooler,
    pub(super) second: Option<PgConnection>,
}

/// Asks two connections in turn which server process answers. It takes no lock, so that none can be
/// left behind on a pooler's connection.
///
/// The second connection may be refused, or wait for a server connection that a pooler does not
/// have, where that is all the server or the pooler allows: then the first is asked alone. What ends
/// the first is an error.
pub(super) async fn look(
    options: &PgConnectOptions,
    first: &mut PgConnection,
    patience: Duration,
) -> sqlx::Result<Looked> {
    let Some(start) = if_known(process(first).await)? else {
        let reason = "the server does not say which of its processes answers";
        let second = timeout(patience, connect(options)).await;
        return Ok(not_looked(reason, second.ok().and_then(Result::ok)));
    };
    let second = async {
        let mut second = connect(options).await?;
        let process = process(&mut second).await?;
        Ok((second, process))
    };
    let (mut second, answer) = match timeout(patience, second).await {
        Ok(Ok(second)) => second,
        Ok(Err(error)) if is_limit(&error) => {
            let reason = format!("a second connection was refused: {error}");
            return alone(first, start, reason).await;
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => {
            let reason = format!("a second connection was not served within {patience:?}");
            return alone(first, start, reason).await;
        }
    };
    let mut rounds = Rounds::default();
    let mut seen = rounds.answered(Side::First, start);
    if seen.is_none() {
        seen = rounds.answered(Side::Second, answer);
    }
    while seen.is_none()
        && let Some(side) = rounds.next()
    {
        let connection = match side {
            Side::First => &mut *first,
            Side::Second => &mut second,
        };
        seen = rounds.answered(side, process(connection).await?);
    }
    let pooler = seen.map_or(Pooler::NotSeen, Pooler::from);
    Ok(Looked {
        pooler,
        second: Some(second),
    })
}

/// With one connection, a change of its process can still be seen; that there is none shows nothing.
async fn alone(
    first: &mut PgConnection,
    start: ServerProcess,
    reason: String,
) -> sqlx::Result<Looked> {
    let mut rounds = Rounds::default();
    let mut seen = rounds.answered(Side::First, start);
    for _ in 1..ROUNDS {
        if seen.is_none() {
            seen = rounds.answered(Side::First, process(first).await?);
        }
    }
    Ok(match seen {
        Some(seen) => Looked {
            pooler: seen.into(),
            second: None,
        },
        None => not_looked(reason, None),
    })
}

/// Refused after one was let in: a limit of connections, whatever code a server or a pooler gives
/// it; but not a server that is starting or going down.
fn is_limit(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some() && !is_of(error, &["57P"])
}

fn not_looked(reason: impl Into<String>, second: Option<PgConnection>) -> Looked {
    Looked {
        pooler: Pooler::NotLooked {
            reason: reason.into(),
        },
        second,
    }
}

impl From<Seen> for Pooler {
    fn from(seen: Seen) -> Self {
        match seen {
            Seen::Pooled(evidence) => Self::Transaction { evidence },
            Seen::SeveralServers { one, other } => Self::SeveralServers { one, other },
        }
    }
}
