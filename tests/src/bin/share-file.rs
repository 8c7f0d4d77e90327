//! Shares a file of leases with other processes: for tests that start, stop and kill several.

use std::{
    env,
    error::Error,
    fs,
    io::{self, BufRead as _, Write as _},
    path::Path,
    time::Duration,
};

use sqlock::{
    Locks, SqliteBackend,
    sqlite::{LeaseOptions, SqliteOptions},
};
use sqlock_tests::Belief;
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::time::sleep;

type Outcome = Result<(), Box<dyn Error>>;

const USAGE: &str = "usage: share-file PATH open | try | block | hold TTL | count TIMES KEYS TTL";

#[tokio::main]
async fn main() -> Outcome {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some((path, what)) = arguments.split_first() else {
        return Err(USAGE.into());
    };
    let what: Vec<&str> = what.iter().map(String::as_str).collect();
    let path = Path::new(path);
    match what[..] {
        ["open"] => SqliteBackend::open(path).await.map(drop)?,
        ["try"] => {
            let taken = open(path, "1000").await?.try_acquire("job").await?;
            let answer = taken.as_ref().map_or("refused", |_| "granted");
            writeln!(io::stdout(), "{answer}")?;
        }
        ["block"] => block(path).await?,
        ["hold", ttl] => hold(&open(path, ttl).await?).await?,
        ["count", times, keys, ttl] => {
            let locks = open(path, ttl).await?;
            count(&locks, path, times.parse()?, keys.parse()?).await?;
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

async fn open(path: &Path, ttl: &str) -> Result<Locks<SqliteBackend>, Box<dyn Error>> {
    let options = LeaseOptions::new()
        .ttl(Duration::from_millis(ttl.parse()?))
        .poll_interval(Duration::from_millis(20));
    let backend = SqliteOptions::new().leases(options).open(path).await?;
    Ok(Locks::new(backend))
}

/// Has the file locked until its input ends.
async fn block(path: &Path) -> Outcome {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(Duration::from_secs(10));
    let mut connection = SqliteConnection::connect_with(&options).await?;
    // a change, which is not to survive
    let take = "begin exclusive; update sqlock_leases set token = 1, owner = 'blocker'";
    sqlx::raw_sql(take).execute(&mut connection).await?;
    writeln!(io::stdout(), "locked")?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

/// Says its token, and then what it believes whenever it is asked.
async fn hold(locks: &Locks<SqliteBackend>) -> Outcome {
    let mut belief = Belief::of(locks.acquire("job").await?);
    writeln!(io::stdout(), "{}", belief.token())?;
    for _ in io::stdin().lock().lines() {
        let told = belief.told().await;
        writeln!(io::stdout(), "{told}")?;
    }
    Ok(())
}

/// Reads a counter, waits, and writes it, under one of several keys; notes the tokens in order.
async fn count(locks: &Locks<SqliteBackend>, path: &Path, times: usize, keys: usize) -> Outcome {
    let offset = usize::try_from(std::process::id())?;
    for time in 0..times {
        let key = format!("key-{}", (time + offset) % keys);
        let counter = path.with_extension(&key);
        let lease = locks.acquire(key.as_str()).await?;
        let count: u32 = match fs::read_to_string(&counter) {
            Ok(text) if !text.is_empty() => text.parse()?,
            _ => 0,
        };
        sleep(Duration::from_millis(1)).await;
        lease.check()?;
        fs::write(&counter, (count + 1).to_string())?;
        let token = lease.token().ok_or("a lease without a token")?;
        let mut tokens = fs::OpenOptions::new();
        let mut tokens = tokens
            .append(true)
            .create(true)
            .open(path.with_extension(format!("{key}-tokens")))?;
        tokens.write_all(format!("{}\n", token.get()).as_bytes())?;
        lease.release().await?;
    }
    Ok(())
}
