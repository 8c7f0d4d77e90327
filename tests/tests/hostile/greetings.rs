//! What a server may say before anything is asked.

use std::time::Duration;

use sqlock::{
    Locks, XactBackend,
    ttl::{LeaseOptions, TtlOptions},
};
use sqlock_postgres::preflight::examine;
use sqlx::postgres::PgPoolOptions;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpListener,
    time::{sleep, timeout},
};

use crate::{
    panics,
    support::{SessionOptions, run, within},
};

const LIMIT: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(20);

/// Sent at once; then the connection is kept, or ends.
const GREETINGS: [(&[u8], bool); 12] = [
    (b"", true),
    (b"", false),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", false),
    (b"SSH-2.0-OpenSSH_9.2\r\n", true),
    // no encryption, and then nothing
    (b"N", true),
    (b"S", false),
    (b"NR", true),
    // authentication of a kind that there is not
    (b"NR\x00\x00\x00\x08\x00\x00\x00\x63", true),
    // SASL without a mechanism
    (b"NR\x00\x00\x00\x0a\x00\x00\x00\x0a\x00\x00", true),
    (b"NE\x00\x00\x00\x05\x00", true),
    // a frame shorter than its own header, on which sqlx panics
    (b"NR\x00\x00\x00\x02", true),
    (
        b"NE\x00\x00\x00\x20SFATAL\x00C53300\x00Mno more\x00\x00aaaaaaa",
        false,
    ),
];

/// As long as it lives, a server with such a greeting; its URL.
async fn server(greeting: &'static [u8], stays: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "postgres://app:secret@{}/app",
        listener.local_addr().unwrap()
    );
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.write_all(greeting).await.ok();
                if stays {
                    sleep(2 * PATIENCE).await;
                }
            });
        }
    });
    url
}

#[test]
fn it_is_an_error_in_time_and_shows_no_password() {
    run(async || {
        panics::note();
        for (greeting, stays) in GREETINGS {
            let url = server(greeting, stays).await;
            let what = format!("{greeting:?}");
            let session = SessionOptions::new().connect_timeout(LIMIT).connect(&url);
            let session = within(PATIENCE, &what, session).await;

            let pool = PgPoolOptions::new()
                .acquire_timeout(LIMIT)
                .connect_lazy(&url);
            let xact = Locks::new(XactBackend::new(pool.unwrap()));
            let xact = within(PATIENCE, &what, xact.try_acquire("k")).await;

            let leases = LeaseOptions::new()
                .statement_limit(LIMIT)
                .outage_limit(LIMIT);
            let ttl = TtlOptions::new().leases(leases).connect(&url).unwrap();
            let ttl = within(PATIENCE, &what, Locks::new(ttl).try_acquire("k")).await;

            let report = timeout(LIMIT, examine(&url.parse().unwrap())).await;
            assert!(!matches!(report, Ok(Ok(_))), "{what}");
            for error in [session.err(), xact.err(), ttl.err()] {
                let error = error.unwrap_or_else(|| panic!("{what}: no error"));
                let text = format!("{error:?} {error}");
                assert!(!text.contains("secret"), "{what}: {text}");
            }
        }
        panics::assert_none();
    });
}
