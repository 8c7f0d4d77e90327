//! One of many nodes leads, and the next one as soon as it ends. Needs `DATABASE_URL`.

use std::{ops::ControlFlow, time::Duration};

use sqlock::{Locks, Standing, Term, TtlBackend};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let backend = TtlBackend::connect(&std::env::var("DATABASE_URL")?)?;
    backend.create_table().await?;
    let locks = Locks::new(backend);
    // Where the leader dies, another leads after the TTL.
    let election = locks.election("scheduler")?.ttl(Duration::from_secs(30));

    // A readiness probe would ask `watch.health().is_ready()`.
    let mut watch = election.watch();
    tokio::spawn(async move {
        while let Some(standing) = watch.changed().await {
            match standing {
                Standing::Following { .. } => eprintln!("following"),
                Standing::Failing(error) => eprintln!("failing: {error}"),
                _ => {}
            }
        }
    });

    let mut terminate = signal(SignalKind::terminate())?;
    let stop = async {
        terminate.recv().await;
    };
    election.run_until(stop, lead).await?;
    eprintln!("ended");
    locks.shutdown().await?;
    Ok(())
}

/// It is dropped at its current `await` where its term is over, and begins anew in the next.
async fn lead(term: Term) -> ControlFlow<()> {
    // What the leader writes to can refuse an older token, as `fenced_resource` does.
    if let Some(token) = term.token() {
        eprintln!("leading with token {token}");
    }
    loop {
        start_what_is_due().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn start_what_is_due() {}
