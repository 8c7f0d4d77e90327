//! `--backend xact`: the lock is a transaction, which `sqlock run` holds while the command runs.

use sqlock_tests::{PgBouncer, PoolMode, TestDatabase, eventually, signal};

use crate::support::{PATIENCE, World, until_dead};

const HOLD: &str = "touch started; until [ -e go ]; do sleep 0.05; done";
const XACT: [&str; 2] = ["--backend", "xact"];

/// On its own database, and by way of a pooler in transaction mode with few server connections.
async fn worlds() -> [(World, Vec<String>, Option<PgBouncer>); 2] {
    let direct = World::new().await;
    let pooled = World::new().await;
    let pooler = PgBouncer::with(PoolMode::Transaction).pool_size(2);
    let pooler = pooler.start(pooled.database.server()).await;
    let url = pooled.database.url_through(&pooler);
    let xact = XACT.map(str::to_owned).to_vec();
    let through = [xact.clone(), vec!["--url".to_owned(), url]].concat();
    [(direct, xact, None), (pooled, through, Some(pooler))]
}

fn with<'a>(base: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let base = base.iter().map(String::as_str);
    base.chain(more.iter().copied()).collect()
}

/// Until so many backends are in a transaction and idle; a look at a lock makes one busy for a moment.
async fn until_in_transactions(database: &TestDatabase, count: usize) {
    eventually(PATIENCE, async || {
        let backends = database.backends().await;
        let states = backends.iter().filter_map(|one| one.state.as_deref());
        let open = states.filter(|state| state.starts_with("idle in transaction"));
        open.count() == count
    })
    .await;
}

#[tokio::test]
async fn of_five_one_runs_and_its_transaction_ends_with_it() {
    for (world, base, _pooler) in worlds().await {
        let script = "echo ran >>runs; touch started; until [ -e go ]; do sleep 0.05; done";
        let holder = world.run(&with(&base, &["daily"]), script);
        world.until("started").await;
        until_in_transactions(&world.database, 1).await;
        for _ in 0..4 {
            let refused = world.run(&with(&base, &["--no-wait", "daily"]), script);
            let refused = refused.ended().await;
            refused.assert_code(75);
            let told = "sqlock: lock \"daily\" is held by sqlock run daily@";
            assert!(refused.stderr.starts_with(told), "{refused:?}");
        }
        world.write("go");
        let ended = holder.ended().await;
        ended.assert_code(0);
        assert_eq!(ended.stderr, "");
        assert_eq!(world.lines("runs"), ["ran"]);
        world.until_free().await;
        until_in_transactions(&world.database, 0).await;
    }
}

#[tokio::test]
async fn those_that_race_run_one_after_another() {
    for (world, base, _pooler) in worlds().await {
        let script = "mkdir inside || echo overlap >>overlaps; \
                      sleep 0.05; echo ran >>runs; rmdir inside";
        let racing: Vec<_> = (0..5)
            .map(|_| world.run(&with(&base, &["--wait", "60s", "daily"]), script))
            .collect();
        for racer in racing {
            racer.ended().await.assert_code(0);
        }
        assert_eq!(world.lines("runs").len(), 5);
        assert!(!world.has("overlaps"));
    }
}

#[tokio::test]
async fn readers_run_together_and_a_writer_does_not() {
    let world = World::new().await;
    let base = XACT.map(str::to_owned);
    let read = |name: &str| {
        let script = format!("touch {name}; until [ -e go ]; do sleep 0.05; done");
        world.run(&with(&base, &["--shared", "data"]), &script)
    };
    let readers = [read("one"), read("two")];
    world.until("one").await;
    world.until("two").await;
    let refused = world.run(&with(&base, &["--no-wait", "data"]), "touch wrote");
    refused.ended().await.assert_code(75);
    world.write("go");
    for reader in readers {
        reader.ended().await.assert_code(0);
    }
    let writer = world.run(&with(&base, &["data"]), "touch wrote");
    writer.ended().await.assert_code(0);
    assert!(world.has("wrote"));
}

#[tokio::test]
async fn killed_it_takes_its_command_with_it_and_the_lock_is_free() {
    for (world, base, _pooler) in worlds().await {
        let script = "trap '' TERM HUP; sleep 600 & echo $! >child; echo $$ >command; wait";
        let run = world.run(&with(&base, &["k"]), script);
        let pids = [world.pid("command").await, world.pid("child").await];
        signal::kill(run.pid());
        for pid in pids {
            until_dead(pid).await;
        }
        let next = world.run(&with(&base, &["k"]), "touch next");
        next.ended().await.assert_code(0);
        assert!(world.has("next"));
        world.until_free().await;
        until_in_transactions(&world.database, 0).await;
    }
}

#[tokio::test]
async fn a_loss_ends_the_command_with_a_code_of_its_own() {
    for (world, base, _pooler) in worlds().await {
        let script = "trap 'touch asked; exit 0' TERM; touch started; \
                      while :; do sleep 0.05; done";
        let run = world.run(&with(&base, &["--grace", "60s", "k"]), script);
        world.until("started").await;
        let held = world.held().await;
        assert_eq!(held.len(), 1, "{held:?}");
        world.database.terminate(held[0].pid).await;
        let ended = run.ended().await;
        ended.assert_code(76);
        assert!(world.has("asked"));
        let told = "sqlock: lock \"k\" was lost: its connection was closed; ending the command";
        assert!(ended.stderr.contains(told), "{ended:?}");
        let next = world.run(&with(&base, &["k"]), "exit 9");
        next.ended().await.assert_code(9);
    }
}

/// The command ends before anybody has looked.
#[tokio::test]
async fn a_loss_that_is_learned_at_the_end_has_that_code_too() {
    for (world, base, _pooler) in worlds().await {
        let script = "touch started; until [ -e go ]; do sleep 0.01; done";
        let run = world.run(&with(&base, &["--lost-exit-code", "4", "k"]), script);
        world.until("started").await;
        let pid = world.held().await[0].pid;
        world.database.terminate(pid).await;
        world.write("go");
        run.ended().await.assert_code(4);
    }
}

#[tokio::test]
async fn the_help_warns_of_long_jobs() {
    let world = World::new().await;
    let help = world.start(world.sqlock(&["run", "--help"])).ended().await;
    help.assert_code(0);
    let words: Vec<_> = help.stdout.split_whitespace().collect();
    let told = "takes one of the pooler's server connections, for as long as CMD runs";
    assert!(words.join(" ").contains(told), "{help:?}");
}

#[tokio::test]
async fn what_only_leases_have_is_refused() {
    let world = World::new().await;
    for backend in ["auto", "session", "xact"] {
        for option in [["--ttl", "1m"], ["--hold-at-least", "1m"], ["--file", "f"]] {
            let arguments = ["--backend", backend, option[0], option[1], "k"];
            let ended = world.run(&arguments, "touch ran").ended().await;
            ended.assert_code(64);
            assert!(ended.stderr.contains(option[0]), "{ended:?}");
        }
    }
    assert!(!world.has("ran"));
}

#[tokio::test]
async fn a_holder_is_asked_no_more_than_it_takes() {
    let world = World::new().await;
    let holder = world.run(&[XACT[0], XACT[1], "k"], HOLD);
    world.until("started").await;
    // one connection, the lock's
    world.until_sessions(1).await;
    assert_eq!(world.database.count_connections().await, 1);
    world.write("go");
    holder.ended().await.assert_code(0);
    world.until_sessions(0).await;
}
