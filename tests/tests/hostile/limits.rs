//! Time limits of the server's own, of versions that may not be at hand.

use sqlock::{Error, Locks, LossCause, xact::XactOptions};
use sqlock_postgres::Failure;
use sqlx::{Connection as _, PgConnection, postgres::PgPoolOptions};

use crate::{
    fake::{Answer, BOOL, FakeServer, INT4, TEXT},
    support::{PATIENCE, run, within},
};

const POSTGRESQL: &str = "PostgreSQL 17.2 on x86_64-linux, compiled by gcc-13.2.0, 64-bit";
const CODE: &str = "25P04";
const WORDS: &str = "terminating connection due to transaction timeout";

/// PostgreSQL 17, whose `transaction_timeout` (25P04) strikes when `question` is asked.
async fn server(question: &'static str) -> FakeServer {
    let value = |kind, text: &str| (kind, Some(text.to_owned()));
    FakeServer::start(move |_, sql| match sql {
        _ if sql.contains(question) => Answer::Fatal(CODE, WORDS),
        _ if sql.contains("version()") => Answer::text(POSTGRESQL),
        _ if sql.contains("server_version_num") => {
            Answer::Row(vec![value(BOOL, "f"), value(TEXT, "170002")])
        }
        _ if sql.contains("set_config('sqlock.guard'") => {
            Answer::Row(vec![value(TEXT, "sentinel"), value(INT4, "0")])
        }
        _ if sql.contains("sqlock.guard") => Answer::Row(vec![value(INT4, "1")]),
        _ => Answer::Done,
    })
    .await
}

fn locks(server: &FakeServer) -> Locks<sqlock::XactBackend> {
    let pool = PgPoolOptions::new().connect_lazy(&server.url()).unwrap();
    Locks::new(XactOptions::new().with_pool(pool))
}

/// Case 32, of its kind: a loss with its cause, whoever finds out.
#[test]
fn a_limit_for_transactions_is_a_loss_with_its_cause() {
    run(async || {
        for end in ["probe", "commit", "roll back"] {
            // all of the three begin with it
            let server = server("operator(pg_catalog./)").await;
            let mut guard = locks(&server).acquire("k").await.unwrap();
            let lost = guard.lost();
            let ended = async {
                match end {
                    "probe" => guard.held_mut().probe().await,
                    "commit" => guard.commit().await,
                    _ => guard.roll_back().await,
                }
            };
            let error = within(PATIENCE, end, ended).await.unwrap_err();
            let cause = LossCause::TransactionTimedOut;
            assert!(
                matches!(&error, Error::Lost { cause: found, .. } if *found == cause),
                "{end}: {error:?}"
            );
            assert_eq!(lost.cause(), Some(cause));
        }
    });
}

/// In the middle of an acquire it is an outage, and may be tried again.
#[test]
fn a_limit_that_strikes_a_try_is_an_outage() {
    run(async || {
        let server = server("set_config('sqlock.guard'").await;
        let error = locks(&server).try_acquire("k").await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert!(error.is_retryable());
    });
}

/// It ends the session, whatever severity it is told with.
#[test]
fn it_is_the_end_of_the_connection() {
    run(async || {
        for answer in [Answer::Fatal(CODE, WORDS), Answer::Error(CODE, WORDS)] {
            let server = FakeServer::start(move |_, _| answer.clone()).await;
            let mut connection = PgConnection::connect(&server.url()).await.unwrap();
            let asked = sqlx::raw_sql("select 1").execute(&mut connection).await;
            let failure = Failure::of(asked.unwrap_err());
            assert!(matches!(failure, Failure::Connection(_)), "{failure:?}");
        }
    });
}
