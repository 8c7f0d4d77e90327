//! Case 46: advisory locks are local on a hot standby.

use sqlock::{Error, session::Preflight};
use sqlock_postgres::preflight::{Backend, Role, examine, recommend, transaction_locks};
use sqlock_tests::PostgresServer;
use sqlx::postgres::PgPoolOptions;

use crate::{
    balancers::balancer,
    starts::refusal,
    support::{SessionOptions, ask, run},
};

#[test]
fn primary_and_standby_both_say_yes_and_the_standby_is_refused() {
    run(async || {
        let primary = PostgresServer::start_primary(&[]).await;
        let standby = primary.start_standby().await;
        // what happens by hand: both hold it, at one time
        let mut one = primary.connect().await;
        let mut other = standby.connect().await;
        for connection in [&mut one, &mut other] {
            assert!(ask::<bool>(connection, "select pg_try_advisory_lock(1)").await);
        }

        let error = refusal(&standby.url()).await;
        assert!(matches!(error, Error::Standby), "{error:?}");
        assert!(error.to_string().contains("connect to the primary"));
        // also where nothing else is looked at
        let unseen = SessionOptions::new().preflight(Preflight::Skip);
        let error = unseen.connect(&standby.url()).await.unwrap_err();
        assert!(matches!(error, Error::Standby), "{error:?}");
        let pool = PgPoolOptions::new().connect_lazy(&standby.url()).unwrap();
        let error = transaction_locks(&pool).await.unwrap_err();
        assert!(matches!(error, Error::Standby), "{error:?}");

        let report = examine(&standby.url().parse().unwrap()).await.unwrap();
        assert_eq!(report.role, Some(Role::Standby));
        assert!(report.lock_capacity.is_some());
        assert_eq!(recommend(&report).backend, None);

        // a primary whose standby may be behind is told so, for leases
        let report = examine(&primary.url().parse().unwrap()).await.unwrap();
        assert_eq!(report.role, Some(Role::Primary));
        let mut dangers = report.dangers.iter();
        let behind = dangers.find(|danger| danger.setting == "synchronous_standby_names");
        assert_eq!(behind.unwrap().backends, [Backend::Ttl]);
        sqlock::SessionBackend::connect(&primary.url())
            .await
            .unwrap();
    });
}

/// Whichever of the connections it is that reaches the standby.
#[test]
fn a_balancer_over_primary_and_standby_is_refused() {
    run(async || {
        let primary = PostgresServer::start_primary(&[]).await;
        let standby = primary.start_standby().await;
        let addresses = [primary.url(), standby.url()];
        let [primary_at, standby_at] = addresses.map(|url| address(&url));
        for (order, preflight) in [
            (vec![&primary_at, &standby_at], Preflight::Check),
            (vec![&standby_at, &primary_at], Preflight::Check),
            (
                vec![&primary_at, &primary_at, &standby_at],
                Preflight::Check,
            ),
            (vec![&primary_at, &standby_at], Preflight::Skip),
        ] {
            let url = balancer(order.into_iter().cloned().collect()).await;
            let options = SessionOptions::new().preflight(preflight);
            let error = options.connect(&url).await.unwrap_err();
            let is_told = matches!(error, Error::Standby | Error::UnsupportedServer { .. });
            assert!(is_told, "{error:?}");
        }
    });
}

fn address(url: &str) -> String {
    let rest = url.split_once('@').unwrap().1;
    rest.split_once('/').unwrap().0.to_owned()
}
