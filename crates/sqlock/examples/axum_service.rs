//! A service that holds a lock for each request, and ends in order. Needs `DATABASE_URL`.

use std::time::Duration;

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    routing::post,
};
use sqlock::{Error, Locks, SessionBackend};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

/// All requests share one connection to the server, however many locks they hold.
type AppLocks = Locks<SessionBackend>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let locks: AppLocks = Locks::new(SessionBackend::connect(&url).await?);
    let service = Router::new()
        .route("/invoices/{id}/pay", post(pay))
        .with_state(locks.clone());

    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on {}", listener.local_addr()?);
    axum::serve(listener, service)
        .with_graceful_shutdown(async move {
            terminate.recv().await;
            eprintln!("ending, once the requests are answered");
        })
        .await?;
    locks.shutdown().await?;
    eprintln!("ended");
    Ok(())
}

/// Where the client goes away, this future is dropped, and the lock is free.
async fn pay(State(locks): State<AppLocks>, Path(id): Path<u64>) -> Result<String, StatusCode> {
    let guard = locks
        .acquire_within(format!("invoice/{id}"), Duration::from_secs(10))
        .await
        .map_err(status)?;
    let receipt = guard.protect(charge(id)).await.map_err(status)?;
    guard.release().await.map_err(status)?;
    Ok(receipt)
}

async fn charge(id: u64) -> String {
    format!("invoice {id} is paid")
}

fn status(error: Error) -> StatusCode {
    match error {
        Error::Timeout { .. } => StatusCode::CONFLICT,
        error if error.is_retryable() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
