//! Starts a private server, and with it what the argument says (`pooler`), prints the pids of their
//! processes, the postmaster first, and waits to be killed: for the test that servers die with the
//! process that started them.

#![allow(clippy::expect_used, reason = "support for tests")]

use std::{
    env,
    io::{self, Write as _},
};

use sqlock_tests::{PgBouncer, PoolMode, PostgresServer};

#[tokio::main]
async fn main() -> io::Result<()> {
    let server = PostgresServer::start(&[]).await;
    let mut pids = server.processes();
    let mut pooler = None;
    match env::args().nth(1).as_deref() {
        None => {}
        Some("pooler") => {
            let started = PgBouncer::start(&server, PoolMode::Transaction).await;
            pids.push(pooler.insert(started).pid());
        }
        Some(other) => return Err(io::Error::other(format!("what is {other}?"))),
    }
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    writeln!(io::stdout(), "{}", pids.join(" "))?;
    // Forever: standard input stays open as long as the test wants.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
