//! Other clients of a pooler.

use std::convert::Infallible;

use sqlx::{
    ConnectOptions, Decode, Executor, PgConnection, Postgres, Row, Type, postgres::PgConnectOptions,
};

use crate::support::execute;

pub(crate) async fn client(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().unwrap();
    options.extra_float_digits(None).connect().await.unwrap()
}

/// What a simple query gives: one value. A prepared statement would meet another server connection.
pub(crate) async fn answer<T>(client: &mut PgConnection, statement: &'static str) -> T
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
{
    let row = client.fetch_one(sqlx::raw_sql(statement)).await.unwrap();
    row.get(0)
}

/// One short statement after the other.
pub(crate) async fn keep_busy(url: String) -> Infallible {
    let mut client = client(&url).await;
    loop {
        execute(&mut client, "select 1").await;
    }
}

/// One short transaction after the other.
pub(crate) async fn keep_in_transactions(url: String) -> Infallible {
    let mut client = client(&url).await;
    loop {
        for statement in ["begin", "select 1", "select pg_sleep(0.002)", "commit"] {
            execute(&mut client, statement).await;
        }
    }
}
