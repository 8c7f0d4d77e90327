//! Holds a lock that is a transaction, with work in it, until it is killed: for tests that kill it.

use std::{
    env,
    io::{self, Write as _},
};

use sqlock::{Locks, XactBackend};
use sqlx::{AssertSqlSafe, PgPool, postgres::PgConnectOptions};

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, id, work] = arguments.as_slice() else {
        return Err(io::Error::other("usage: hold-transaction URL ID SQL"));
    };
    let id: i64 = id.parse().map_err(io::Error::other)?;
    let options: PgConnectOptions = url.parse().map_err(io::Error::other)?;
    let pool = PgPool::connect_lazy_with(options.extra_float_digits(None));
    let locks = Locks::new(XactBackend::new(pool));
    let mut guard = locks.acquire(id).await.map_err(io::Error::other)?;
    let work = sqlx::raw_sql(AssertSqlSafe(work.as_str()));
    let worked = work.execute(guard.connection()).await;
    worked.map_err(io::Error::other)?;
    writeln!(io::stdout(), "held")?;
    // Forever: standard input stays open as long as the test wants.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
