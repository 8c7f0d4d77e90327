//! Case 46: a standby's locks are its own.

use sqlock::{
    Error, Locks,
    xact::{Preflight, XactOptions, lock_in, try_lock_all_in, try_lock_in},
};
use sqlock_tests::PostgresServer;
use sqlx::{Connection as _, PgPool};

use crate::support::{PATIENCE, execute, run};

/// Refused by whoever looks first, by the try of whoever does not look, and in a transaction of the
/// application's own, which goes on; after a promotion, it is a primary as any.
#[test]
fn a_standby_is_refused() {
    run(async || {
        let primary = PostgresServer::start_primary(&[]).await;
        let standby = primary.start_standby().await;
        let pool = PgPool::connect_lazy_with(standby.url().parse().unwrap());
        for preflight in [Preflight::Check, Preflight::Skip] {
            let options = XactOptions::new().preflight(preflight);
            let locks = Locks::new(options.with_pool(pool.clone()));
            for refused in [
                locks.try_acquire(1).await.map(drop),
                locks.acquire_within(1, PATIENCE).await.map(drop),
            ] {
                assert!(matches!(refused, Err(Error::Standby)), "{refused:?}");
            }
        }
        let mut connection = standby.connect().await;
        let mut transaction = connection.begin().await.unwrap();
        for refused in [
            try_lock_in(&mut transaction, 1).await.map(drop),
            try_lock_all_in(&mut transaction, [1, 2]).await.map(drop),
            lock_in(&mut transaction, 1, PATIENCE).await,
        ] {
            assert!(matches!(refused, Err(Error::Standby)), "{refused:?}");
        }
        execute(&mut transaction, "select 1").await;
        transaction.commit().await.unwrap();

        let locks = Locks::new(XactOptions::new().with_pool(pool));
        assert!(matches!(locks.try_acquire(1).await, Err(Error::Standby)));
        standby.promote().await;
        locks.acquire(1).await.unwrap().commit().await.unwrap();
    });
}
