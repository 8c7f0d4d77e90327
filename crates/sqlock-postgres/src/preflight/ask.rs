//! Questions in the simple protocol.
//!
//! An extended query is two round trips in sqlx, and through a transaction pooler the second may
//! meet another server process, and another client's statement. A simple query is one message.

use sqlx::{AssertSqlSafe, Executor, PgConnection, postgres::PgRow};

use crate::shielded;

/// How often a statement that was cut short is tried.
const TRIES: usize = 5;

/// The first row of the answer, once the whole of it is there.
pub(super) async fn ask(connection: &mut PgConnection, sql: &str) -> sqlx::Result<PgRow> {
    rows(connection, sql)
        .await?
        .into_iter()
        .next()
        .ok_or(sqlx::Error::RowNotFound)
}

/// All rows of the answer. Asked again where a role's `statement_timeout` is so short that the server
/// did not come to it: lifting it would, through a transaction pooler, lift it for others.
pub(super) async fn rows(connection: &mut PgConnection, sql: &str) -> sqlx::Result<Vec<PgRow>> {
    let mut tries = 0;
    loop {
        tries += 1;
        // all of it is written here; what is put in is numbers
        let question = sqlx::raw_sql(AssertSqlSafe(sql));
        match shielded(connection.fetch_all(question)).await.flatten() {
            Err(error) if tries < TRIES && is_of(&error, &["57014"]) => {}
            answer => return answer,
        }
    }
}

/// `None` where the server does not know how to answer, and the connection goes on.
pub(super) fn if_known<T>(answer: sqlx::Result<T>) -> sqlx::Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if is_refusal(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the server lacks what was asked for, or answers in a form that PostgreSQL would not use.
/// Conflicts, limits, time limits and ends of connections say nothing of the kind.
pub(super) fn is_refusal(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(_) => !is_of(error, &["08", "40", "53", "55", "57"]),
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::RowNotFound => true,
        _ => false,
    }
}

/// Whether the server gave one of these codes, or one of these classes of codes.
pub(super) fn is_of(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| codes.iter().any(|of| code.starts_with(of)))
}
