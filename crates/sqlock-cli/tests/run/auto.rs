//! Without `--backend`, or by `--backend auto`, a look at the server picks the backend.

use sqlock_tests::{PgBouncer, PoolMode, PostgresServer};

use crate::support::{Ended, World};

const HOLD: &str = "touch started; until [ -e go ]; do sleep 0.05; done";

/// Whether the holder's lock is a transaction; a look at it makes its backend busy for a moment.
async fn is_in_transaction(world: &World) -> bool {
    let held = world.held().await;
    assert_eq!(held.len(), 1, "{held:?}");
    loop {
        let backends = world.database.backends().await;
        let holder = backends.iter().find(|backend| backend.pid == held[0].pid);
        match holder.unwrap().state.as_deref() {
            Some("idle in transaction") => return true,
            Some("idle") => return false,
            _ => tokio::task::yield_now().await,
        }
    }
}

async fn end(world: &World, arguments: &[&str]) -> Ended {
    world.run(arguments, "touch ran").ended().await
}

#[tokio::test]
async fn on_a_direct_server_it_is_session_and_nothing_is_said() {
    let world = World::new().await;
    for arguments in [&["k"][..], &["--backend", "auto", "k"]] {
        let run = world.run(arguments, HOLD);
        world.until("started").await;
        assert!(!is_in_transaction(&world).await);
        world.write("go");
        let ended = run.ended().await;
        ended.assert_code(0);
        assert_eq!(ended.stderr, "");
        for name in ["started", "go"] {
            std::fs::remove_file(world.path(name)).unwrap();
        }
    }
}

/// Machines that come by different ways pick different backends, which exclude each other.
#[tokio::test]
async fn through_a_transaction_pooler_it_is_xact_and_both_exclude_each_other() {
    let world = World::new().await;
    let pooler = PgBouncer::start(world.database.server(), PoolMode::Transaction).await;
    let url = world.database.url_through(&pooler);
    let pooled = world.run(&["--url", &url, "k"], HOLD);
    world.until("started").await;
    assert!(is_in_transaction(&world).await);
    end(&world, &["--no-wait", "k"]).await.assert_code(75);
    world.write("go");
    let ended = pooled.ended().await;
    ended.assert_code(0);
    let told = "sqlock: locking by --backend xact, which holds a transaction and a server \
                connection until the command ends: ";
    assert!(ended.stderr.starts_with(told), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for name in ["started", "go"] {
        std::fs::remove_file(world.path(name)).unwrap();
    }

    let direct = world.run(&["k"], HOLD);
    world.until("started").await;
    let refused = end(&world, &["--url", &url, "--no-wait", "k"]).await;
    refused.assert_code(75);
    world.write("go");
    direct.ended().await.assert_code(0);
    assert!(!world.has("ran"));
    world.until_free().await;
}

/// Case 1, at the command: what would work by accident is refused, and the error says what to do.
#[tokio::test]
async fn session_through_a_transaction_pooler_is_refused_before_any_work() {
    let world = World::new().await;
    let pooler = PgBouncer::start(world.database.server(), PoolMode::Transaction).await;
    let url = world.database.url_through(&pooler);
    let ended = end(&world, &["--backend", "session", "--url", &url, "k"]).await;
    ended.assert_code(69);
    for told in [
        "this connection goes through a transaction pooler",
        "connect directly, use the pooler's session mode, or use a backend that is made for \
         poolers: xact or ttl",
    ] {
        assert!(ended.stderr.contains(told), "{ended:?}");
    }
    assert!(!world.has("ran"));
    assert_eq!(world.database.advisory_locks().await, []);
}

/// A lease would not exclude those who lock by another way.
#[tokio::test]
async fn a_lease_is_not_picked_but_named() {
    let world = World::new().await;
    let pooler = PgBouncer::start(world.database.server(), PoolMode::Statement).await;
    let url = world.database.url_through(&pooler);
    for backend in ["auto", "xact"] {
        let ended = end(&world, &["--backend", backend, "--url", &url, "k"]).await;
        ended.assert_code(69);
        let told = "a pooler in statement mode";
        assert!(ended.stderr.contains(told), "{ended:?}");
    }
    assert!(!world.has("ran"));
    let ended = end(&world, &["--backend", "ttl", "--url", &url, "k"]).await;
    ended.assert_code(0);
}

#[tokio::test]
async fn a_standby_is_refused() {
    let primary = PostgresServer::start_primary(&[]).await;
    let standby = primary.start_standby().await;
    let world = World::on(primary.database().await);
    for backend in ["auto", "session", "xact"] {
        let url = standby.url();
        let ended = end(&world, &["--backend", backend, "--url", &url, "k"]).await;
        ended.assert_code(69);
        assert!(ended.stderr.contains("standby"), "{ended:?}");
        assert!(ended.stderr.contains("primary"), "{ended:?}");
    }
    assert!(!world.has("ran"));
}
