use sqlock::session::Fencing;
use sqlock_tests::TestDatabase;

use crate::support::execute;

/// The shipped SQL of servers that have no unlogged sequences; newer ones take it too.
const BEFORE_15: &str =
    include_str!("../../../crates/sqlock-postgres/migrations/before_15/0001_fencing.sql");

/// What tokens are drawn from.
pub(crate) trait Kind: Send + Sync + 'static {
    fn make(database: &TestDatabase) -> impl Future<Output = ()> + Send;
}

/// An unlogged sequence on top of a base.
pub(crate) struct Sequence;

/// A durable row.
pub(crate) struct Row;

impl Kind for Sequence {
    async fn make(database: &TestDatabase) {
        let made = Fencing::new().create(&database.url()).await;
        made.expect("the tables");
    }
}

impl Kind for Row {
    async fn make(database: &TestDatabase) {
        execute(&mut database.connect().await, BEFORE_15).await;
    }
}
