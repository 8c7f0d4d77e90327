//! An application's commit with a NOTIFY can be stuck, and with it everybody's NOTIFY: the server
//! has one lock for them.

use std::time::Duration;

use sqlock_tests::{PostgresServer, eventually};
use sqlx::PgConnection;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{
    PATIENCE, SessionOptions, Times, ask, execute, node_with, run, until_waiting, within,
};

const LOCK_TIMEOUT: Duration = Duration::from_millis(250);

/// It stalls no lock of ours for longer than the session's `lock_timeout`, and all goes on.
#[test]
fn a_stuck_notify_of_an_application_stalls_no_lock() {
    run(async || {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        let options = SessionOptions::new().lock_timeout(LOCK_TIMEOUT);
        let one = node_with(&database, options.clone()).await;
        let two = node_with(&database, options).await;
        let mut admin = server.connect().await;
        let mut application = database.connect().await;
        execute(&mut application, "create table t (i int)").await;
        execute(
            &mut admin,
            "alter system set synchronous_standby_names = 'nosuch'",
        )
        .await;
        execute(&mut admin, "select pg_reload_conf()").await;
        sleep(Duration::from_millis(200)).await;
        let stuck = tokio::spawn(async move {
            execute(
                &mut application,
                "begin; insert into t values (1); notify x; commit",
            )
            .await;
        });
        let mut another = database.connect().await;
        execute(
            &mut another,
            "set lock_timeout = '50ms'; set synchronous_commit = off",
        )
        .await;
        eventually(PATIENCE, async || !can_notify(&mut another).await).await;

        // under contention, so that releases have somebody to notify
        let mut times = Times::default();
        let mut handed_over = Times::default();
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(3) {
            let held = times.measure(one.acquire("contended")).await.unwrap();
            let lock = two.lock("contended");
            let waiting = tokio::spawn(async move { lock.await.unwrap().release().await });
            until_waiting(&database, 1).await;
            let began = Instant::now();
            times.measure(held.release()).await.unwrap();
            // no other lock of the session that notifies waits for longer
            let aside = times.measure(one.acquire("aside")).await.unwrap();
            times.measure(aside.release()).await.unwrap();
            within(PATIENCE, "the waiter's turn", waiting)
                .await
                .unwrap()
                .unwrap();
            handed_over.push(began.elapsed());
        }
        assert!(
            !can_notify(&mut another).await,
            "it was not stuck all the time"
        );
        let slack = Duration::from_millis(350);
        times.assert_at_most(LOCK_TIMEOUT, LOCK_TIMEOUT + slack);
        assert!(
            times.max() >= LOCK_TIMEOUT / 2,
            "nobody met the stuck notify: {times:?}"
        );
        // by the poll
        handed_over.assert_at_most(Duration::from_secs(1), Duration::from_secs(3));

        execute(&mut admin, "alter system reset synchronous_standby_names").await;
        execute(&mut admin, "select pg_reload_conf()").await;
        within(PATIENCE, "the application's commit", stuck)
            .await
            .unwrap();
        eventually(PATIENCE, async || can_notify(&mut another).await).await;
        let guard = one.acquire("contended").await.unwrap();
        assert!(guard.check().is_ok());
        guard.release().await.unwrap();
        assert_eq!(ask::<i64>(&mut another, "select count(*) from t").await, 1);
        database.wait_until_no_advisory_locks(PATIENCE).await;
    });
}

async fn can_notify(connection: &mut PgConnection) -> bool {
    let notify = sqlx::query("notify y").execute(connection);
    timeout(PATIENCE, notify).await.unwrap().is_ok()
}
