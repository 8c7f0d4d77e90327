//! What callers may hand in: any text, any time.

use std::time::Duration;

use proptest::prelude::*;
use sqlock::{
    LockKey, Locks, MemoryBackend, TtlBackend, Wait,
    session::{Preflight, SessionOptions},
    ttl::{LeaseOptions, TtlOptions},
    xact::XactOptions,
};
use sqlock_postgres::connect_options;
use sqlx::postgres::PgPoolOptions;

use crate::{
    backends::{lease, session, xact},
    fake::FakeServer,
    panics,
    support::{PATIENCE, run, within},
};

const SECRET: &str = "S3cr3tS3cr3t";

/// From nothing to far beyond any clock.
const DURATIONS: [Duration; 8] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_millis(1),
    Duration::from_secs(86_400),
    Duration::from_secs(100 * 366 * 86_400),
    Duration::from_secs(i64::MAX as u64),
    Duration::from_secs(u64::MAX),
    Duration::MAX,
];

const TEXTS: [&str; 9] = [
    "",
    " ",
    "'",
    "'; drop table work; --",
    "\\'; select pg_sleep(60); --",
    "$$ $1 %s \u{202e}",
    "\u{0}",
    "a\u{0}b",
    "\u{10ffff}\n\r\t\u{1b}[31m",
];

proptest! {
    #[test]
    fn any_text_is_a_url_or_an_error_that_does_not_repeat_it(
        before in ".{0,20}",
        after in ".{0,40}",
        scheme in prop_oneof!["postgres://", "postgresql://", ".{0,12}"],
    ) {
        for url in [
            format!("{scheme}{before}{SECRET}{after}"),
            format!("{scheme}app:{SECRET}@{after}"),
            format!("{scheme}h/d?{before}={SECRET}&{after}"),
        ] {
            if let Err(error) = connect_options(&url) {
                let text = format!("{error} {error:?}");
                prop_assert!(!text.contains(SECRET), "{text}");
            }
        }
    }

    #[test]
    fn any_text_is_a_key_or_an_error(name in "\\PC{0,600}|.{0,40}") {
        let is_key = LockKey::new(name.as_str()).is_ok();
        let fits = !name.is_empty() && name.len() <= 512 && !name.contains('\0');
        prop_assert_eq!(is_key, fits);
    }

    /// A name that the server would cut short, or that it cannot have, is no name.
    #[test]
    fn any_text_names_a_table_or_is_an_error(schema in ".{0,70}", table in ".{0,70}") {
        let options = TtlOptions::new().table(schema.clone(), table.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _context = runtime.enter();
        let is_name = options.connect("postgres://h/d").is_ok();
        let fits = |name: &str| !name.is_empty() && name.len() <= 63 && !name.contains('\0');
        prop_assert!(!is_name || fits(&schema) && fits(&table));
    }
}

#[test]
fn any_time_to_live_is_kept_or_refused() {
    run(async || {
        panics::note();
        let server = FakeServer::start(|_, sql| lease(sql)).await;
        for duration in DURATIONS {
            let is_sound = (Duration::from_millis(50)..=Duration::from_secs(100 * 366 * 86_400))
                .contains(&duration);
            let options = TtlOptions::new().leases(LeaseOptions::new().ttl(duration));
            assert_eq!(
                options.connect(&server.url()).is_ok(),
                is_sound,
                "{duration:?}"
            );
            let leases = [
                LeaseOptions::new().hold_at_least(duration),
                LeaseOptions::new().poll_interval(duration),
                LeaseOptions::new().statement_limit(duration),
                LeaseOptions::new().outage_limit(duration),
            ];
            for leases in leases {
                let options = TtlOptions::new().leases(leases);
                if let Ok(backend) = options.connect(&server.url()) {
                    let locks = Locks::new(backend);
                    let taken = within(PATIENCE, "an answer", locks.try_acquire("k")).await;
                    drop(taken);
                }
            }
            // of one request
            let locks = Locks::new(TtlBackend::connect(&server.url()).unwrap());
            let lock = locks.lock("k").ttl(duration).hold_at_least(duration);
            let taken = within(PATIENCE, "an answer", lock.try_acquire()).await;
            assert_eq!(taken.is_ok(), is_sound, "{duration:?}: {taken:?}");
        }
        panics::assert_none();
    });
}

#[test]
fn any_time_to_wait_is_waited_for() {
    run(async || {
        panics::note();
        let memory = Locks::new(MemoryBackend::new());
        for duration in DURATIONS {
            for wait in [Wait::at_most(duration), Wait::from(duration)] {
                let taken = memory.lock("free").within(wait).acquire();
                drop(within(PATIENCE, "memory", taken).await.ok());
            }
            let server = FakeServer::start(|_, sql| xact(sql)).await;
            let pool = PgPoolOptions::new().connect_lazy(&server.url()).unwrap();
            let locks = XactOptions::new().poll_interval(duration).with_pool(pool);
            let taken = Locks::new(locks).lock("k").within(duration).acquire().await;
            drop(taken);

            let server = FakeServer::start(|_, sql| session(sql)).await;
            let options = || SessionOptions::new().preflight(Preflight::Skip);
            for options in [
                options().poll_interval(duration),
                options().lock_timeout(duration),
                options().connect_timeout(duration),
                options().reconnect_limit(duration),
                options().heartbeat(duration, duration),
                options().fairness(duration, duration),
            ] {
                if let Ok(backend) = options.connect(&server.url()).await {
                    let locks = Locks::new(backend);
                    let taken = locks.lock("k").within(duration).acquire();
                    drop(within(PATIENCE, "session", taken).await.ok());
                }
            }
        }
        panics::assert_none();
    });
}

/// Names, labels and payloads are values, and never statements.
#[test]
fn any_text_is_a_value() {
    run(async || {
        panics::note();
        let database = sqlock_tests::TestDatabase::create().await;
        let mut admin = database.connect().await;
        crate::support::execute(&mut admin, "create table work ()").await;
        let backend = TtlBackend::connect(&database.url()).unwrap();
        backend.create_table().await.unwrap();
        for text in TEXTS {
            let backend = TtlBackend::connect(&database.url()).unwrap();
            let leases = Locks::builder(backend).label(text).build();
            let lock = leases.lock(LockKey::new(text).unwrap_or(LockKey::from_id(1)));
            let taken = lock.payload(text).try_acquire().await;
            if text.contains('\0') {
                assert!(taken.is_err(), "{text:?}");
            } else {
                let lease = taken.unwrap().expect("it is free");
                let key = lease.key().clone();
                let holder = leases.inspect(&key).await.unwrap().remove(0);
                assert_eq!(holder.label.unwrap_or_default(), text);
                lease.release().await.unwrap();
            }

            let options = SessionOptions::new().preflight(Preflight::Skip);
            let url = database.url();
            let session = options.application_name(text).connect(&url);
            if let Ok(backend) = session.await {
                let locks = Locks::new(backend);
                let key = LockKey::new(text).unwrap_or(LockKey::from_id(1));
                drop(locks.try_acquire(&key).await.unwrap().expect("it is free"));
                locks.shutdown().await.unwrap();
            }
        }
        let table = "select to_regclass('work') is not null";
        assert!(crate::support::ask::<bool>(&mut admin, table).await);
        panics::assert_none();
    });
}
