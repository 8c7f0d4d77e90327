//! Every node wakes at the same moment, and one does the work. Needs `DATABASE_URL`.

use sqlock::{Locks, SessionBackend};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let locks = Locks::new(SessionBackend::connect(&url).await?);
    let written = locks
        .run_once("daily-report", async |_lock| write_report().await)
        .await?;
    match written {
        Some(pages) => eprintln!("wrote {pages} pages"),
        None => eprintln!("another node writes it"),
    }
    locks.shutdown().await?;
    Ok(())
}

async fn write_report() -> Result<u32, sqlock::Error> {
    Ok(7)
}
