//! Holds a session lock until it is killed: for tests that kill it.

#![allow(clippy::expect_used, reason = "support for tests")]

use std::{
    env,
    io::{self, Write as _},
};

use sqlock::{Locks, SessionBackend};

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, id] = arguments.as_slice() else {
        return Err(io::Error::other("usage: hold-lock URL ID"));
    };
    let id: i64 = id.parse().map_err(io::Error::other)?;
    let backend = SessionBackend::connect(url).await;
    let locks = Locks::new(backend.map_err(io::Error::other)?);
    let _guard = locks.acquire(id).await.map_err(io::Error::other)?;
    writeln!(io::stdout(), "held")?;
    // Forever: standard input stays open as long as the test wants.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
