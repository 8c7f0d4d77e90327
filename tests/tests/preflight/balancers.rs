//! A balancer in front of several servers, each with locks of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

use sqlock::{Error, SessionBackend};
use sqlock_postgres::preflight::{Pooler, examine, recommend};
use sqlock_tests::PostgresServer;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use crate::{starts::refusal, support::run};

/// Hands its connections to the servers one after the other.
pub(crate) async fn balancer(servers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let next = AtomicUsize::new(0);
        while let Ok((mut client, _)) = listener.accept().await {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let server = servers[number % servers.len()].clone();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(server).await.unwrap();
                // ends with either
                drop(copy_bidirectional(&mut client, &mut server).await);
            });
        }
    });
    format!("postgres://postgres@{address}/postgres")
}

fn address(server: &PostgresServer) -> String {
    let url = server.url();
    let rest = url.split_once('@').unwrap().1;
    rest.split_once('/').unwrap().0.to_owned()
}

#[test]
fn a_balancer_over_two_servers_is_refused_and_over_one_is_not() {
    run(async || {
        let (one, other) = (
            PostgresServer::start(&[]).await,
            PostgresServer::start(&[]).await,
        );
        let url = balancer(vec![address(&one), address(&other)]).await;
        let error = refusal(&url).await;
        let Error::UnsupportedServer { reason, .. } = &error else {
            panic!("{error:?}");
        };
        assert!(reason.contains("connect to one of them"), "{reason}");
        let report = examine(&url.parse().unwrap()).await.unwrap();
        assert!(matches!(report.pooler, Pooler::SeveralServers { .. }));
        assert_eq!(recommend(&report).backend, None);

        let url = balancer(vec![address(&one), address(&one)]).await;
        SessionBackend::connect(&url).await.unwrap();
    });
}
