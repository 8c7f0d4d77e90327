//! Holds a lease, and says what it believes when it is asked: for tests that stop and kill it.

#![allow(clippy::expect_used, reason = "support for tests")]

use std::{
    env,
    io::{self, BufRead as _, Write as _},
    time::Duration,
};

use sqlock::{
    LockGuard, Locks,
    ttl::{LeaseOptions, TtlHeld, TtlOptions},
};
use sqlx::{Connection as _, PgConnection};
use tokio::{
    sync::mpsc,
    task::{JoinHandle, yield_now},
};

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, key, ttl] = arguments.as_slice() else {
        return Err(io::Error::other(
            "usage: hold-lease URL KEY TTL-IN-MILLISECONDS",
        ));
    };
    let ttl = Duration::from_millis(ttl.parse().map_err(io::Error::other)?);
    let options = TtlOptions::new().leases(LeaseOptions::new().ttl(ttl));
    let locks = Locks::new(options.connect(url).map_err(io::Error::other)?);
    let lease = locks
        .acquire(key.as_str())
        .await
        .map_err(io::Error::other)?;
    let token = lease.token().expect("a lease has a token").get();
    let mut resource = PgConnection::connect(url).await.map_err(io::Error::other)?;
    let work = protected_work(&lease);
    writeln!(io::stdout(), "{token}")?;
    for line in io::stdin().lock().lines() {
        let answer = match line?.as_str() {
            "believes" => {
                yield_now().await;
                let work = if work.is_finished() {
                    "stopped"
                } else {
                    "running"
                };
                let (valid, lost) = (lease.is_valid(), lease.check().is_err());
                format!("valid={valid} lost={lost} protected={work}")
            }
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

/// Work that would notice if it were polled after the lease is over.
fn protected_work(lease: &LockGuard<TtlHeld>) -> JoinHandle<()> {
    let lost = lease.lost();
    let (ticks, mut ticked) = mpsc::unbounded_channel();
    let still = lease.lost();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            if ticks.send(()).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        let work = async {
            while ticked.recv().await.is_some() {
                assert!(still.check().is_ok(), "work goes on without its lease");
            }
        };
        lost.protect(work).await.ok();
    })
}
