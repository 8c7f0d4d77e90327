//! Shares a file of leases with other processes: for tests that start and kill several.

use std::{env, fs, io, path::Path, time::Duration};

use sqlock::{
    Locks,
    sqlite::{LeaseOptions, SqliteOptions},
};
use tokio::time::sleep;

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path, what] = arguments.as_slice() else {
        return Err(io::Error::other("usage: share-file PATH count|hold"));
    };
    let options = LeaseOptions::new()
        .ttl(Duration::from_secs(2))
        .poll_interval(Duration::from_millis(20));
    let backend = SqliteOptions::new().leases(options).open(path).await;
    let locks = Locks::new(backend.map_err(io::Error::other)?);
    if what == "hold" {
        let _lease = locks.acquire("job").await.map_err(io::Error::other)?;
        return std::future::pending().await;
    }
    let counter = Path::new(path).with_extension("count");
    for _ in 0..25 {
        let lease = locks.acquire("counter").await.map_err(io::Error::other)?;
        let count: u32 = match fs::read_to_string(&counter) {
            Ok(text) => text.parse().map_err(io::Error::other)?,
            Err(_) => 0,
        };
        sleep(Duration::from_millis(1)).await;
        fs::write(&counter, (count + 1).to_string())?;
        lease.release().await.map_err(io::Error::other)?;
    }
    Ok(())
}
