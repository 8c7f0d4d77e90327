//! A password is in no `Debug`, and in no error.

use std::fmt::Debug;

use sqlock::{
    Locks, SessionBackend, TtlBackend, XactBackend,
    session::{Preflight, SessionOptions},
    ttl::TtlOptions,
    xact::XactOptions,
};
use sqlock_postgres::connect_options;
use sqlx::postgres::PgPoolOptions;

use crate::{
    backends::{lease, session, xact},
    fake::FakeServer,
    support::{PATIENCE, run},
};

const PASSWORD: &str = "S3cr3t-hunter2";

#[track_caller]
fn hides(what: &dyn Debug) {
    for text in [format!("{what:?}"), format!("{what:#?}")] {
        assert!(
            !text.contains("S3cr3t") && !text.contains("hunter2"),
            "{text}"
        );
    }
}

fn with_password(server: &FakeServer) -> String {
    server.url().replace("app@", &format!("app:{PASSWORD}@"))
}

#[test]
fn debug_shows_none() {
    run(async || {
        let server = FakeServer::start(|_, sql| session(sql)).await;
        let options = SessionOptions::new().preflight(Preflight::Skip);
        hides(&options);
        let backend = options.connect(&with_password(&server)).await.unwrap();
        hides(&backend);
        let locks = Locks::new(backend);
        hides(&locks);
        hides(&locks.lock("k"));
        let guard = locks.acquire_within("k", PATIENCE).await.unwrap();
        hides(&guard);
        hides(&guard.lost());

        let server = FakeServer::start(|_, sql| xact(sql)).await;
        let pool = PgPoolOptions::new().connect_lazy(&with_password(&server));
        let pool = pool.unwrap();
        hides(&XactOptions::new());
        let locks = Locks::new(XactBackend::new(pool));
        hides(&locks);
        let guard = locks.acquire_within("k", PATIENCE).await.unwrap();
        hides(&guard);

        let server = FakeServer::start(|_, sql| lease(sql)).await;
        hides(&TtlOptions::new());
        let locks = Locks::new(TtlBackend::connect(&with_password(&server)).unwrap());
        hides(&locks);
        let guard = locks.acquire_within("k", PATIENCE).await.unwrap();
        hides(&guard);
    });
}

/// Of URLs that cannot be, and of servers that are not there.
#[test]
fn errors_show_none() {
    run(async || {
        for url in [
            format!("mysql://app:{PASSWORD}@h/d"),
            format!("postgres://app:{PASSWORD}@h:port/d"),
            format!("postgres://app:{PASSWORD}@[h/d"),
            format!("postgres://app:{PASSWORD}@h/d?sslmode=nonsense"),
            format!("postgres://h/d?password={PASSWORD}&statement-cache-capacity=x"),
            format!("postgres:/app:{PASSWORD}@h/d"),
            PASSWORD.to_owned(),
        ] {
            hides(&connect_options(&url).unwrap_err());
            hides(&SessionBackend::connect(&url).await.unwrap_err());
            hides(&TtlBackend::connect(&url).unwrap_err());
        }
        let gone = format!("postgres://app:{PASSWORD}@127.0.0.1:1/d");
        hides(&SessionBackend::connect(&gone).await.unwrap_err());
        let locks = Locks::new(TtlBackend::connect(&gone).unwrap());
        hides(&locks.try_acquire("k").await.unwrap_err());
    });
}
