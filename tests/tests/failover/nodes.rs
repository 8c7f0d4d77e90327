//! Processes, as it were: each has backends of its own.

use std::time::Duration;

use sqlock::{
    FencingToken, Held, LockGuard, Locks, SessionBackend, TtlBackend, XactBackend,
    session::{Fencing, SessionOptions},
    ttl::{LeaseOptions, TtlOptions},
    xact::XactOptions,
};
use sqlx::postgres::PgPoolOptions;

/// Long enough for a failover on a busy machine.
pub(crate) const FAILOVER: Duration = Duration::from_secs(60);

/// Outlasts a failover.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// Does not.
pub(crate) const SHORT: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(100);

pub(crate) async fn session(url: &str) -> Locks<SessionBackend> {
    let options = SessionOptions::new()
        .reconnect_limit(FAILOVER)
        .fencing(Fencing::new());
    Locks::new(options.connect(url).await.expect("a session"))
}

pub(crate) fn xact(url: &str) -> Locks<XactBackend> {
    let pool = PgPoolOptions::new().connect_lazy(url).expect("a url");
    let options = XactOptions::new()
        .poll_interval(POLL)
        .fencing(Fencing::new());
    Locks::new(options.with_pool(pool))
}

pub(crate) fn leases(url: &str, ttl: Duration) -> Locks<TtlBackend> {
    let options = LeaseOptions::new()
        .ttl(ttl)
        .poll_interval(POLL)
        .outage_limit(FAILOVER);
    let options = TtlOptions::new().leases(options);
    Locks::new(options.connect(url).expect("options"))
}

pub(crate) fn token<H: Held>(guard: &LockGuard<H>) -> FencingToken {
    guard.token().expect("a token")
}
