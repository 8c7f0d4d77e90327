use std::net::SocketAddr;

use sqlock::{TtlBackend, session::Fencing};
use sqlock_tests::{Entrance, PostgresServer, Standby, TestDatabase};
use sqlx::postgres::PgConnectOptions;

/// What a commit on the primary waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replication {
    Asynchronous,
    Synchronous,
}

/// A primary with the tables of leases and of tokens, its standby, and the way in.
pub(crate) struct Cluster {
    pub(crate) primary: PostgresServer,
    pub(crate) standby: Standby,
    pub(crate) database: TestDatabase,
    entrance: Entrance,
}

impl Cluster {
    pub(crate) async fn start(replication: Replication) -> Self {
        let primary = PostgresServer::start_primary(&[]).await;
        let database = primary.database().await;
        let fencing = Fencing::new().create(&database.url()).await;
        fencing.expect("the tables of tokens");
        let leases = TtlBackend::connect(&database.url()).expect("options");
        leases.create_table().await.expect("the table of leases");
        let standby = primary.start_standby().await;
        standby.wait_until_caught_up().await;
        if replication == Replication::Synchronous {
            standby.make_synchronous().await;
        }
        let entrance = Entrance::open(address(&database.url())).await;
        Self {
            entrance: entrance.expect("a port"),
            primary,
            standby,
            database,
        }
    }

    /// What clients know.
    pub(crate) fn url(&self) -> String {
        let (port, name) = (self.entrance.port(), self.database.name());
        format!("postgres://postgres@127.0.0.1:{port}/{name}")
    }

    /// The primary's own.
    pub(crate) fn url_of_old(&self) -> String {
        self.database.url()
    }

    /// The standby's own.
    pub(crate) fn url_of_new(&self) -> String {
        self.standby.url_of(&self.database)
    }

    /// Clients find the standby from now on.
    pub(crate) fn lead_to_new(&self) {
        self.entrance.lead_to(address(&self.url_of_new()));
        self.entrance.cut();
    }

    /// The standby takes over, and is what clients find.
    pub(crate) async fn promote(&self) {
        self.standby.promote().await;
        self.lead_to_new();
    }
}

fn address(url: &str) -> SocketAddr {
    let options: PgConnectOptions = url.parse().expect("a url");
    ([127, 0, 0, 1], options.get_port()).into()
}
