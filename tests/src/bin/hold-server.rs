//! Starts a private server, and with it what the argument says (`pooler` or `standby`), or only a
//! pooler of the shared one (`shared-pooler`); prints the pids of their processes, the postmaster
//! first, and waits to be killed: for the test that servers die with the process that started them.

#![allow(clippy::expect_used, reason = "support for tests")]

use std::{
    env,
    io::{self, Write as _},
};

use sqlock_tests::{PgBouncer, PoolMode, PostgresServer};

#[tokio::main]
async fn main() -> io::Result<()> {
    match env::args().nth(1).as_deref() {
        None => wait(&PostgresServer::start(&[]).await.processes()),
        Some("pooler") => {
            let server = PostgresServer::start(&[]).await;
            let pooler = PgBouncer::start(&server, PoolMode::Transaction).await;
            let mut pids = server.processes();
            pids.push(pooler.pid());
            wait(&pids)
        }
        Some("shared-pooler") => {
            let server = PostgresServer::shared().await;
            let pooler = PgBouncer::start(&server, PoolMode::Transaction).await;
            wait(&[pooler.pid()])
        }
        Some("standby") => {
            let primary = PostgresServer::start_primary(&[]).await;
            let standby = primary.start_standby().await;
            wait(&[primary.processes(), standby.server().processes()].concat())
        }
        Some(other) => Err(io::Error::other(format!("what is {other}?"))),
    }
}

fn wait(pids: &[i32]) -> io::Result<()> {
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    writeln!(io::stdout(), "{}", pids.join(" "))?;
    // Forever: standard input stays open as long as the test wants.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
