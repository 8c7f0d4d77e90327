//! What a transaction pooler does to locks (cases 1 to 6), and what it does not do to these.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use sqlock::{
    Error, Locks, XactBackend,
    xact::{Preflight, XactOptions, try_lock_in},
};
use sqlock_tests::{PgBouncer, PoolMode, signal};
use sqlx::{Connection as _, PgPool, postgres::PgConnectOptions};
use tokio::task::JoinSet;

use crate::{
    support::{PATIENCE, execute, within},
    world::{World, both_ways, directly, on, pooled, process, value},
};

/// The pooler refuses a start-up parameter that sqlx sends unasked. The error says which, and what to
/// do, at once.
#[test]
fn a_refused_start_up_parameter_is_named() {
    pooled(&[], async |world| {
        let with_digits: PgConnectOptions = world.url().parse().unwrap();
        let with_more = world.options().options([("search_path", "public")]);
        for (options, name) in [(with_digits, "extra_float_digits"), (with_more, "options")] {
            let pool = PgPool::connect_lazy_with(options);
            for preflight in [Preflight::Check, Preflight::Skip] {
                let options = XactOptions::new().preflight(preflight);
                let locks = Locks::new(options.with_pool(pool.clone()));
                let attempt = within(PATIENCE, "the error", locks.acquire("k"));
                let error = attempt.await.unwrap_err();
                let Error::InvalidOption { reason, .. } = &error else {
                    panic!("{name}: {error:?}");
                };
                assert!(reason.contains(name), "{reason}");
                assert!(!error.is_retryable());
            }
        }
        let digits = world.url().parse::<PgConnectOptions>().unwrap();
        let locks = Locks::new(XactBackend::new(PgPool::connect_lazy_with(digits)));
        let error = locks.try_acquire("k").await.unwrap_err().to_string();
        assert!(error.contains("call extra_float_digits(None)"), "{error}");
    });
}

/// Cases 1 and 2: of many clients that share a few server connections, one has the lock; and it is
/// free after it.
#[test]
fn clients_that_share_server_connections_exclude_each_other() {
    pooled(&[("default_pool_size", "3")], async |world| {
        let clients: Vec<Locks<XactBackend>> = (0..12).map(|_| on(world.pool(1))).collect();
        for _ in 0..10 {
            let mut tries = JoinSet::new();
            let guard = clients[0].acquire(1).await.unwrap();
            for client in &clients[1..] {
                let client = client.clone();
                tries.spawn(async move { client.try_acquire(1).await.unwrap().is_some() });
            }
            assert!(!tries.join_all().await.contains(&true));
            guard.commit().await.unwrap();
            // freed by the transaction's end; no reset query had to (case 3)
            assert_eq!(world.database.advisory_locks().await, []);
        }
        world.is_clean().await;
    });
}

/// Case 3: `server_reset_query` does not run in transaction mode, so that what a session leaves stays
/// there. A guard leaves nothing.
#[test]
fn nothing_is_left_for_a_reset_that_does_not_come() {
    let settings = [
        ("server_reset_query", "DISCARD ALL"),
        ("default_pool_size", "1"),
    ];
    pooled(&settings, async |world| {
        for end in ["commit", "drop", "roll back"] {
            let mut guard = world.locks().acquire("k").await.unwrap();
            execute(guard.connection(), "set local lock_timeout = '7s'").await;
            match end {
                "commit" => guard.commit().await.unwrap(),
                "drop" => drop(guard),
                _ => guard.roll_back().await.unwrap(),
            }
            world.is_clean().await;
        }
        let mut next = world.connect().await;
        let left: String = value(&mut next, "show lock_timeout").await;
        assert_eq!(left, "0");
        // by hand, what does stay there
        execute(
            &mut next,
            "set lock_timeout = '7s'; select pg_advisory_lock(3)",
        )
        .await;
        next.close().await.unwrap();
        let mut next = world.connect().await;
        let left: String = value(&mut next, "show lock_timeout").await;
        assert_eq!(left, "7s");
        assert_eq!(world.database.advisory_locks().await.len(), 1);
    });
}

/// The lock stays on the server connection that has it, whatever the others do.
#[test]
fn a_guard_keeps_its_server_connection() {
    pooled(&[("default_pool_size", "2")], async |world| {
        let mut guard = world.locks().acquire(1).await.unwrap();
        let pid = process(guard.connection()).await;
        for _ in 0..20 {
            let mut other = world.connect().await;
            assert_ne!(process(&mut other).await, pid);
            assert_eq!(process(guard.connection()).await, pid);
        }
        guard.commit().await.unwrap();
    });
}

/// Case 5: nothing of ours is a prepared statement that another server connection would not have.
#[test]
fn no_prepared_statement_is_left_on_a_server_connection() {
    both_ways(async |world| {
        let mut guard = world.locks().acquire_all(["a", "b"]).await.unwrap();
        guard.held_mut().probe().await.unwrap();
        try_lock_in(guard.connection(), "c").await.unwrap();
        let prepared = "select count(*) from pg_prepared_statements";
        assert_eq!(value::<i64>(guard.connection(), prepared).await, 0);
        guard.commit().await.unwrap();
    });
}

/// Case 6: a client that is killed. Its lock is free at once, and its work is not there.
#[test]
fn a_client_that_is_killed() {
    both_ways(async |world| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hold-transaction"))
            .args([&world.url(), "1", "insert into work values (1)"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        let locks = world.locks();
        assert!(locks.try_acquire(1).await.unwrap().is_none());
        signal::kill(i32::try_from(child.id()).unwrap());
        child.wait().unwrap();
        let guard = locks.acquire_within(1, Duration::from_secs(2)).await;
        guard.unwrap().release().await.unwrap();
        world.has_work(&[]).await;
    });
}

/// Where BEGIN is refused, that is told.
#[test]
fn statement_mode_is_told() {
    directly(async |world: World| {
        let pooler = PgBouncer::start(world.database.server(), PoolMode::Statement).await;
        let pool = PgPool::connect_lazy_with(world.database.through(&pooler));
        let locks = Locks::new(XactBackend::new(pool));
        let attempt = within(PATIENCE, "the error", locks.acquire("k"));
        let error = attempt.await.unwrap_err();
        assert!(
            matches!(error, Error::UnsupportedServer { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("transaction mode"), "{error}");
        world.is_clean().await;
    });
}

/// A pooler that goes away and comes back, under those who wait.
#[test]
fn waiters_outlast_a_restart_of_the_pooler() {
    directly(async |world: World| {
        let pooler = PgBouncer::start(world.database.server(), PoolMode::Transaction).await;
        let pool = PgPool::connect_lazy_with(world.database.through(&pooler));
        let locks = on(pool);
        let mut holder = world.database.connect().await;
        execute(&mut holder, "select pg_advisory_lock(1)").await;
        let waiting = locks.lock(1).within(2 * PATIENCE);
        let waiter = tokio::spawn(async move { waiting.await?.release().await });
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(120)).await;
            pooler.restart().await;
        }
        drop(holder);
        let served = within(2 * PATIENCE, "the waiter's turn", waiter).await;
        served.unwrap().unwrap();
        world.is_clean().await;
    });
}
