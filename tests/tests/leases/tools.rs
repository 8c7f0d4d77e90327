use std::time::Duration;

use sqlock::{
    LockGuard, Locks, TtlBackend,
    ttl::{LeaseOptions, TtlHeld, TtlOptions},
};
use sqlock_tests::TestDatabase;
use sqlx::PgConnection;

use crate::support::{ask, execute};

pub(crate) type LeaseLocks = Locks<TtlBackend>;
pub(crate) type Lease = LockGuard<TtlHeld>;

pub(crate) const TTL: Duration = Duration::from_millis(1500);

/// A database with the table.
pub(crate) async fn database() -> TestDatabase {
    let database = TestDatabase::create().await;
    create_table(&database).await;
    database
}

pub(crate) async fn create_table(database: &TestDatabase) {
    let backend = TtlBackend::connect(&database.url()).expect("options");
    backend.create_table().await.expect("a table");
}

pub(crate) fn options() -> LeaseOptions {
    LeaseOptions::new()
        .ttl(TTL)
        .poll_interval(Duration::from_millis(50))
}

/// What another process would have.
pub(crate) fn node(database: &TestDatabase) -> LeaseLocks {
    node_with(database, options())
}

pub(crate) fn node_with(database: &TestDatabase, leases: LeaseOptions) -> LeaseLocks {
    locks(TtlOptions::new().leases(leases), &database.url())
}

pub(crate) fn locks(options: TtlOptions, url: &str) -> LeaseLocks {
    Locks::new(options.connect(url).expect("options"))
}

/// Rewrites the row of a lease, as only a test would.
pub(crate) async fn tamper(database: &TestDatabase, row: &str, set: &str) {
    let mut connection = database.connect().await;
    let statement = format!("update sqlock_leases set {set} where name = '{row}'");
    execute(&mut connection, &statement).await;
}

/// Seconds from now to the row's expiry, by the database's clock.
pub(crate) async fn seconds_left(connection: &mut PgConnection, row: &str) -> f64 {
    let statement = format!(
        "select extract(epoch from expires_at - clock_timestamp())::float8
         from sqlock_leases where name = '{row}'"
    );
    ask(connection, &statement).await
}
