use std::time::Duration;

use sqlx::{Connection as _, postgres::PgConnection};

use crate::{PostgresServer, TestDatabase, holds_within};

const PATIENCE: Duration = Duration::from_secs(60);

/// What streaming takes, which the newer versions come with.
const STREAMING: &[(&str, &str)] = &[
    ("wal_level", "replica"),
    ("max_wal_senders", "10"),
    ("hot_standby", "on"),
    // A standby that was stopped for a while finds what it has missed.
    ("wal_keep_size", "256MB"),
];

/// A hot standby that streams from a private server. Stopped and removed like a private server; its
/// primary runs as long.
///
/// ```no_run
/// # async fn example() {
/// use sqlock_tests::{PostgresServer, Stop};
///
/// let primary = PostgresServer::start_primary(&[]).await;
/// let standby = primary.start_standby().await;
/// // … write to the primary …
/// standby.wait_until_caught_up().await;
/// primary.stop(Stop::Immediate).await;
/// standby.promote().await;
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Standby {
    server: PostgresServer,
    primary: PostgresServer,
}

impl PostgresServer {
    /// A private server with what it takes to be followed, and settings of its own.
    pub async fn start_primary(settings: &[(&str, &str)]) -> Self {
        Self::start(&[STREAMING, settings].concat()).await
    }

    /// A standby that streams from this private server; of local binaries.
    pub async fn start_standby(&self) -> Standby {
        Standby {
            server: self.start_follower().await,
            primary: self.clone(),
        }
    }
}

impl Standby {
    /// The server that it is, for faults: [`PostgresServer::kill`] and the like.
    #[must_use]
    pub fn server(&self) -> &PostgresServer {
        &self.server
    }

    /// The URL of its database `postgres`, of a superuser.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The URL of its copy of a database of the primary, which is there once it has caught up.
    #[must_use]
    pub fn url_of(&self, database: &TestDatabase) -> String {
        let is_copied = database.server().url() == self.primary.url();
        assert!(is_copied, "the standby follows another server");
        self.server.url_of(database.name())
    }

    /// A superuser's connection to its database `postgres`.
    pub async fn connect(&self) -> PgConnection {
        self.server.connect().await
    }

    /// A superuser's connection to its copy of a database of the primary.
    pub async fn connect_to(&self, database: &TestDatabase) -> PgConnection {
        PgConnection::connect(&self.url_of(database))
            .await
            .expect("the standby takes a connection")
    }

    /// Makes a primary of it, on a timeline of its own, and waits until it is one. The primary that
    /// it followed is left as it is, and may be dead.
    pub async fn promote(&self) {
        let mut connection = self.connect().await;
        let is_promoted: bool = sqlx::query_scalar("select pg_promote(true, 60)")
            .fetch_one(&mut connection)
            .await
            .expect("a superuser may promote a standby");
        assert!(is_promoted, "the standby was not promoted within 60 s");
    }

    /// Waits until it shows all that the primary has written so far.
    pub async fn wait_until_caught_up(&self) {
        let mut primary = self.primary.connect().await;
        let written: String = sqlx::query_scalar("select pg_current_wal_lsn()::text")
            .fetch_one(&mut primary)
            .await
            .expect("the primary says how far it is");
        let mut connection = self.connect().await;
        let has_caught_up = holds_within(PATIENCE, async || {
            sqlx::query_scalar("select coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false)")
                .bind(&written)
                .fetch_one(&mut connection)
                .await
                .expect("the standby says how far it is")
        });
        assert!(
            has_caught_up.await,
            "the standby has not caught up within {PATIENCE:?}"
        );
    }

    /// Has the primary wait for it at each commit, from now on, and waits until it does.
    pub async fn make_synchronous(&self) {
        let mut primary = self.primary.connect().await;
        for statement in [
            "alter system set synchronous_standby_names = '*'",
            "select pg_reload_conf()",
        ] {
            let outcome = sqlx::query(statement).execute(&mut primary).await;
            outcome.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let is_synchronous = holds_within(PATIENCE, async || {
            sqlx::query_scalar(
                "select exists (select from pg_stat_replication where sync_state = 'sync')",
            )
            .fetch_one(&mut primary)
            .await
            .expect("the primary says who follows it")
        });
        assert!(is_synchronous.await, "not synchronous after {PATIENCE:?}");
    }

    /// Lets it fall behind: what it receives is kept, and not shown. A promotion ends that.
    pub async fn pause_replay(&self) {
        self.run("select pg_wal_replay_pause()").await;
        let mut connection = self.connect().await;
        let is_paused = holds_within(PATIENCE, async || {
            sqlx::query_scalar("select pg_get_wal_replay_pause_state() = 'paused'")
                .fetch_one(&mut connection)
                .await
                .expect("the standby says whether it is paused")
        });
        assert!(is_paused.await, "replay goes on after {PATIENCE:?}");
    }

    /// Ends [`pause_replay`](Self::pause_replay).
    pub async fn resume_replay(&self) {
        self.run("select pg_wal_replay_resume()").await;
    }

    async fn run(&self, statement: &'static str) {
        let mut connection = self.connect().await;
        let outcome = sqlx::query(statement).execute(&mut connection).await;
        outcome.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}
