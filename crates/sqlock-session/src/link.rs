//! The one connection to the server.

mod ask;
mod open;
mod tokens;

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::Arc,
    time::Duration,
};

use sqlock_core::{AdvisoryId, Error, LossCause, Mode};
use sqlock_postgres::{Failure, ServerFacts, TokenSource, shielded};
use sqlx::{PgPool, Row as _, postgres::PgListener};
use tokio::{runtime::Handle, time::timeout};

use crate::{
    BACKEND,
    notify::{self, CHANNEL},
    server_lock::{HeldOnServer, from_pg_locks},
};
use tokens::Tokens;

/// A session that is open. Dropping it closes the connection: it is never used for anything else.
///
/// The connection is a listener, since no other public part of sqlx reads an idle socket, and only
/// an idle socket that is read tells at once that the server has gone.
pub(crate) struct Link {
    listener: Option<PgListener>,
    pool: PgPool,
    facts: ServerFacts,
    limit: Duration,
    is_listening: bool,
    tokens: Option<Tokens>,
    /// Statements for one row, by its code.
    lone: HashMap<i16, Arc<str>>,
    runtime: Handle,
}

/// Why a session is at its end, or only its statement.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The session is over.
    Session { cause: LossCause, failure: Ended },
    /// The statement failed; the session goes on.
    Statement(Failure),
}

/// What to tell those whose requests were under way.
#[derive(Debug)]
pub(crate) enum Ended {
    Failed(Failure),
    NoAnswer(Duration),
    Changed { before: i32, after: i32 },
}

impl Ended {
    pub(crate) fn error(&self) -> Error {
        match self {
            Self::Failed(failure) => failure.error(BACKEND, "acquire"),
            Self::NoAnswer(limit) => Error::Unavailable {
                backend: BACKEND,
                source: format!("no answer within {limit:?}").into(),
            },
            Self::Changed { before, after } => Error::PoolerRefused {
                evidence: format!(
                    "one connection was answered by server processes {before} and {after}; \
                     a lock may be orphaned on pid {before}"
                ),
            },
        }
    }
}

impl Fault {
    /// The error for those who asked for a lock, with a token where there is a source of them.
    pub(crate) fn error(&self, tokens: Option<&TokenSource>) -> Error {
        match self {
            Self::Session { failure, .. } => failure.error(),
            Self::Statement(failure) => statement_error(failure, tokens),
        }
    }
}

pub(crate) fn statement_error(failure: &Failure, tokens: Option<&TokenSource>) -> Error {
    match tokens {
        Some(tokens) => tokens.error(BACKEND, "acquire", failure),
        None => failure.error(BACKEND, "acquire"),
    }
}

impl Link {
    pub(crate) fn facts(&self) -> ServerFacts {
        self.facts
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.is_listening
    }

    /// Asks whether the server is still there.
    pub(crate) async fn heartbeat(&mut self) -> Result<(), Fault> {
        let limit = self.limit;
        let query = sqlx::query("select pg_backend_pid()");
        let row = bounded(limit, query.fetch_one(self.listener()?)).await?;
        let pid = row.try_get(0).map_err(undecodable)?;
        self.same_session(pid)
    }

    /// Everything that the session holds, by the server's own word.
    pub(crate) async fn held_on_server(&mut self) -> Result<HashSet<HeldOnServer>, Fault> {
        let limit = self.limit;
        let query = sqlx::query(
            "select classid::bigint, objid::bigint, objsubid, mode = 'ShareLock', pg_backend_pid() \
             from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted",
        );
        let rows = bounded(limit, query.fetch_all(self.listener()?)).await?;
        let mut held = HashSet::new();
        for row in rows {
            let number = |index| -> sqlx::Result<u32> {
                Ok(u32::try_from(row.try_get::<i64, _>(index)?).unwrap_or_default())
            };
            let lock = || -> sqlx::Result<_> {
                let mode = if row.try_get(3)? {
                    Mode::Shared
                } else {
                    Mode::Exclusive
                };
                Ok(from_pg_locks(number(0)?, number(1)?, row.try_get(2)?, mode))
            };
            held.extend(lock().map_err(undecodable)?);
        }
        Ok(held)
    }

    pub(crate) async fn listen(&mut self) -> Result<(), Fault> {
        let limit = self.limit;
        bounded(limit, self.listener()?.listen(CHANNEL)).await?;
        self.is_listening = true;
        Ok(())
    }

    pub(crate) async fn unlisten(&mut self) -> Result<(), Fault> {
        let limit = self.limit;
        bounded(limit, self.listener()?.unlisten(CHANNEL)).await?;
        self.is_listening = false;
        Ok(())
    }

    /// Wakes those who wait for these keys in other sessions. In a statement of its own: the
    /// server's one lock for notifications can be stuck behind somebody's commit.
    pub(crate) async fn announce(&mut self, keys: &[AdvisoryId]) -> Result<(), Fault> {
        let limit = self.limit;
        for payload in notify::payloads(keys) {
            let query = sqlx::query("select pg_notify($1, $2)")
                .bind(CHANNEL)
                .bind(payload);
            bounded(limit, query.execute(self.listener()?)).await?;
        }
        Ok(())
    }

    /// The next key that another session has released. Must be polled while the session is idle:
    /// it is what sees the end of the connection.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub(crate) async fn next_wake(&mut self) -> Result<Vec<AdvisoryId>, Fault> {
        let own = self.facts.backend_pid;
        match shielded(self.listener()?.try_recv()).await.flatten() {
            Ok(Some(notification)) => Ok(notify::keys_from(&notification, own)),
            Ok(None) => Err(closed()),
            Err(error) => Err(session_over(Failure::of(error))),
        }
    }

    /// What arrived during a statement.
    pub(crate) fn buffered_wakes(&mut self) -> Vec<AdvisoryId> {
        let own = self.facts.backend_pid;
        let mut keys = Vec::new();
        if let Some(listener) = &mut self.listener {
            while let Some(notification) = listener.next_buffered() {
                keys.extend(notify::keys_from(&notification, own));
            }
        }
        keys
    }

    /// Frees everything, has the server confirm it, and closes the connection.
    pub(crate) async fn close(mut self) -> Result<(), Error> {
        let limit = self.limit;
        let freed = match self.listener() {
            Ok(listener) => {
                let query = sqlx::query("select pg_advisory_unlock_all()");
                bounded(limit, query.execute(listener)).await.map(drop)
            }
            Err(fault) => Err(fault),
        };
        let pool = self.pool.clone();
        drop(self);
        timeout(limit, pool.close()).await.ok();
        freed.map_err(|fault| match fault {
            Fault::Session { failure, .. } => failure.error(),
            Fault::Statement(failure) => failure.error(BACKEND, "shutdown"),
        })
    }

    pub(crate) fn listener(&mut self) -> Result<&mut PgListener, Fault> {
        self.listener.as_mut().ok_or_else(closed)
    }

    fn same_session(&self, pid: i32) -> Result<(), Fault> {
        let before = self.facts.backend_pid;
        if pid == before {
            return Ok(());
        }
        Err(Fault::Session {
            cause: LossCause::SessionChanged {
                orphaned_pid: before,
            },
            failure: Ended::Changed { before, after: pid },
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // the listener's drop spawns, which outside of a runtime panics
        let _runtime = self.runtime.enter();
        drop(self.listener.take());
        let pool = self.pool.clone();
        drop(self.runtime.spawn(async move { pool.close().await }));
    }
}

/// One round trip. The server's silence ends the session, as its locks may be anybody's by then.
async fn bounded<T>(
    limit: Duration,
    round_trip: impl Future<Output = sqlx::Result<T>>,
) -> Result<T, Fault> {
    match timeout(limit, shielded(round_trip))
        .await
        .map(Result::flatten)
    {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(match Failure::of(error) {
            failure @ Failure::Statement(_) => Fault::Statement(failure),
            failure => session_over(failure),
        }),
        Err(_) => Err(Fault::Session {
            cause: LossCause::Unresponsive,
            failure: Ended::NoAnswer(limit),
        }),
    }
}

fn session_over(failure: Failure) -> Fault {
    Fault::Session {
        cause: LossCause::ConnectionClosed,
        failure: Ended::Failed(failure),
    }
}

fn closed() -> Fault {
    let error = sqlx::Error::Io(std::io::ErrorKind::ConnectionAborted.into());
    session_over(Failure::of(error))
}

/// An answer that is none: what the statement did is not known.
fn undecodable(error: sqlx::Error) -> Fault {
    Fault::Session {
        cause: LossCause::Undetermined,
        failure: Ended::Failed(Failure::of(error)),
    }
}
