//! Starts a private server, prints the pids of its processes, the postmaster first,
//! and waits to be killed: for the test that a server dies with the process that started it.

#![allow(clippy::expect_used, reason = "support for tests")]

use std::io::{self, Write as _};

use sqlock_tests::PostgresServer;

#[tokio::main]
async fn main() -> io::Result<()> {
    let server = PostgresServer::start(&[]).await;
    let pids: Vec<String> = server.processes().iter().map(ToString::to_string).collect();
    writeln!(io::stdout(), "{}", pids.join(" "))?;
    // Forever: standard input stays open as long as the test wants.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
