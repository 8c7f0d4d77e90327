use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use sqlock::{TtlBackend, session::Fencing};
use sqlock_tests::{Entrance, eventually};
use sqlx::{Connection as _, PgConnection};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{
    engine::{Belongings, docker},
    rest,
};

const NODES: [&str; 3] = ["one", "two", "three"];
/// For a cluster, or a node of it, to come up on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// Runs a test on a runtime of its own. One that hangs fails.
pub(crate) fn run(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let ended = timeout(TIME_LIMIT, test()).await;
        ended.expect("the test does not hang");
    });
}

/// Patroni's `ttl`, the least that it takes.
pub(crate) const LEADER_TTL: Duration = Duration::from_secs(20);

/// Patroni's `synchronous_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Asynchronous,
    Synchronous,
}

/// Three nodes and etcd on one network, and another on which clients reach the nodes.
pub(crate) struct Cluster {
    belongings: Belongings,
    nodes: BTreeMap<&'static str, IpAddr>,
    entrance: Arc<Entrance>,
    asking: AbortHandle,
}

impl Cluster {
    pub(crate) async fn start(mode: Mode) -> Self {
        let image = std::env::var("SQLOCK_TEST_PATRONI_IMAGE")
            .expect("SQLOCK_TEST_PATRONI_IMAGE: see scripts/test-patroni");
        let prefix = format!("sqlock-patroni-{}-{mode:?}", std::process::id()).to_lowercase();
        let (inner, outer) = (format!("{prefix}-cluster"), format!("{prefix}-clients"));
        let mut belongings = Belongings {
            prefix: prefix.clone(),
            containers: Vec::new(),
            networks: vec![inner.clone(), outer.clone()],
        };
        docker(&["network", "create", &inner]).await;
        docker(&["network", "create", &outer]).await;
        let etcd = belongings.container("etcd");
        docker(&[
            "run",
            "--detach",
            "--name",
            &etcd,
            "--network",
            &inner,
            "--network-alias",
            "etcd",
            &image,
            "etcd",
            "--data-dir",
            "/tmp/etcd",
            "--listen-client-urls",
            "http://0.0.0.0:2379",
            "--advertise-client-urls",
            "http://etcd:2379",
        ])
        .await;
        let (ttl, mode) = (
            format!("TTL={}", LEADER_TTL.as_secs()),
            format!("SYNCHRONOUS_MODE={}", mode == Mode::Synchronous),
        );
        let mut nodes = BTreeMap::new();
        for name in NODES {
            let container = belongings.container(name);
            docker(&[
                "create",
                "--name",
                &container,
                "--network",
                &inner,
                "--network-alias",
                name,
                "--env",
                &ttl,
                "--env",
                &mode,
                "--env",
                "LOOP_WAIT=2",
                "--env",
                "RETRY_TIMEOUT=3",
                &image,
                "patroni-node",
                name,
            ])
            .await;
            docker(&["network", "connect", &outer, &container]).await;
            docker(&["start", &container]).await;
            let address =
                format!("{{{{(index .NetworkSettings.Networks \"{outer}\").IPAddress}}}}");
            let address = docker(&["inspect", "--format", &address, &container]).await;
            nodes.insert(name, address.parse().expect("an address"));
        }
        let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
        let entrance = Arc::new(Entrance::open(nobody).await.expect("a port"));
        let asking = tokio::spawn(ask_for_the_way(nodes.clone(), Arc::clone(&entrance)));
        let cluster = Self {
            belongings,
            nodes,
            entrance,
            asking: asking.abort_handle(),
        };
        cluster.wait_until_whole().await;
        let url = cluster.url();
        Fencing::new()
            .create(&url)
            .await
            .expect("the tables of tokens");
        let leases = TtlBackend::connect(&url).expect("options");
        leases.create_table().await.expect("the table of leases");
        cluster
    }

    /// A leader, and two that stream from it.
    pub(crate) async fn wait_until_whole(&self) {
        eventually(PATIENCE, async || {
            let mut streaming = 0;
            for address in self.nodes.values() {
                streaming += rest::state(*address).await.matches("\"streaming\"").count();
            }
            let Ok(mut connection) = PgConnection::connect(&self.url()).await else {
                return false;
            };
            let is_followed = sqlx::query_scalar(
                "select count(*) = 2 and (current_setting('synchronous_standby_names') = ''
                   or bool_or(sync_state = 'sync'))
                 from pg_stat_replication where state = 'streaming'",
            );
            streaming > 0
                && is_followed
                    .fetch_one(&mut connection)
                    .await
                    .unwrap_or(false)
        })
        .await;
    }

    /// What clients know: it leads to the node that says that it is the primary.
    pub(crate) fn url(&self) -> String {
        let port = self.entrance.port();
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    pub(crate) fn url_of(&self, node: &str) -> String {
        format!("postgres://postgres@{}:5432/postgres", self.nodes[node])
    }

    pub(crate) async fn is_primary(&self, node: &str) -> bool {
        rest::is_primary(self.nodes[node]).await
    }

    pub(crate) async fn leader(&self) -> &'static str {
        for (name, address) in &self.nodes {
            if rest::is_primary(*address).await {
                return name;
            }
        }
        panic!("nobody leads");
    }

    /// One that may take over: the synchronous one, where there is one.
    pub(crate) async fn candidate(&self) -> String {
        let mut connection = PgConnection::connect(&self.url())
            .await
            .expect("the leader");
        sqlx::query_scalar(
            "select application_name from pg_stat_replication
             order by sync_state = 'sync' desc, application_name limit 1",
        )
        .fetch_one(&mut connection)
        .await
        .expect("somebody follows")
    }

    pub(crate) async fn switch_over(&self, leader: &str, candidate: &str) {
        rest::switch_over(self.nodes[leader], leader, candidate).await;
    }

    /// The node reaches neither etcd nor the others; its clients reach it.
    pub(crate) async fn part(&self, node: &str) {
        let (network, container) = (self.network(), self.container(node));
        docker(&["network", "disconnect", &network, &container]).await;
    }

    pub(crate) async fn rejoin(&self, node: &str) {
        let (network, container) = (self.network(), self.container(node));
        docker(&["network", "connect", "--alias", node, &network, &container]).await;
    }

    fn network(&self) -> String {
        format!("{}-cluster", self.belongings.prefix)
    }

    fn container(&self, node: &str) -> String {
        format!("{}-{node}", self.belongings.prefix)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

impl Belongings {
    fn container(&mut self, name: &str) -> String {
        let name = format!("{}-{name}", self.prefix);
        self.containers.push(name.clone());
        name
    }
}

/// As a balancer does: connections that are there are left alone.
async fn ask_for_the_way(nodes: BTreeMap<&'static str, IpAddr>, entrance: Arc<Entrance>) {
    loop {
        for address in nodes.values() {
            if rest::is_primary(*address).await {
                entrance.lead_to((*address, 5432).into());
            }
        }
        sleep(Duration::from_millis(200)).await;
    }
}
