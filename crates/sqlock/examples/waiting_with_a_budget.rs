//! Waits for a lock, but not for ever. Needs `DATABASE_URL`.

use std::time::Duration;

use sqlock::{Error, Locks, SessionBackend};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let locks = Locks::new(SessionBackend::connect(&url).await?);
    match locks
        .acquire_within("invoice/42", Duration::from_secs(5))
        .await
    {
        Ok(guard) => {
            eprintln!("working on {}", guard.key());
            guard.release().await?;
        }
        Err(Error::Timeout { key, waited }) => eprintln!("{key} is taken; waited {waited:?}"),
        Err(error) => return Err(error.into()),
    }
    locks.shutdown().await?;
    Ok(())
}
