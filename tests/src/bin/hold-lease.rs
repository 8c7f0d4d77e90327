//! Holds a lease, and says what it believes when it is asked: for tests that stop and kill it.

use std::{
    env,
    io::{self, BufRead as _, Write as _},
    time::Duration,
};

use sqlock::{
    Locks,
    ttl::{LeaseOptions, TtlOptions},
};
use sqlock_tests::Belief;
use sqlx::{Connection as _, PgConnection};

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, key, ttl, resource] = arguments.as_slice() else {
        return Err(io::Error::other(
            "usage: hold-lease URL KEY TTL-IN-MILLISECONDS URL-OF-THE-RESOURCE",
        ));
    };
    let ttl = Duration::from_millis(ttl.parse().map_err(io::Error::other)?);
    let options = TtlOptions::new().leases(LeaseOptions::new().ttl(ttl));
    let locks = Locks::new(options.connect(url).map_err(io::Error::other)?);
    let lease = locks
        .acquire(key.as_str())
        .await
        .map_err(io::Error::other)?;
    let mut belief = Belief::of(lease);
    let token = belief.token();
    let mut resource = PgConnection::connect(resource)
        .await
        .map_err(io::Error::other)?;
    writeln!(io::stdout(), "{token}")?;
    for line in io::stdin().lock().lines() {
        let answer = match line?.as_str() {
            "believes" => belief.told().await,
            "write" => {
                let update = "update resource set last_token = $1 where last_token <= $1 \
                              and not exists (select from resource where last_token > $1)";
                let query = sqlx::query(update).bind(token);
                let done = query
                    .execute(&mut resource)
                    .await
                    .map_err(io::Error::other)?;
                match done.rows_affected() {
                    1 => "1 row".to_owned(),
                    rows => format!("{rows} rows"),
                }
            }
            other => format!("what is {other}?"),
        };
        writeln!(io::stdout(), "{answer}")?;
    }
    Ok(())
}
