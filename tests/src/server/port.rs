use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, anyhow, bail};

const PORTS_TO_TRY: usize = 5;

/// Starts something on a free port. It can be taken by another between the look and the start.
pub(crate) fn on_free_port<T>(mut start: impl FnMut(u16) -> Result<T>) -> Result<(u16, T)> {
    let mut outcome = Err(anyhow!("no port was tried"));
    for _ in 0..PORTS_TO_TRY {
        let port = free_port()?;
        outcome = start(port).map(|started| (port, started));
        match &outcome {
            Err(error) if format!("{error:#}").contains("Address already in use") => {}
            _ => break,
        }
    }
    outcome
}

/// A port that is free now. Below the range that outgoing connections take theirs from, so that a
/// stopped server finds it free again.
fn free_port() -> Result<u16> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(process::id() * 97 % u32::from(COUNT))?;
    for _ in 0..COUNT {
        let offset = (start + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
        if TcpListener::bind(("127.0.0.1", FIRST + offset)).is_ok() {
            return Ok(FIRST + offset);
        }
    }
    bail!("no free port between {FIRST} and {}", FIRST + COUNT)
}
