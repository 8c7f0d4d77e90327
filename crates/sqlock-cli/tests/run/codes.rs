//! Exit codes and environment.

use std::{fs, os::unix::fs::PermissionsExt as _};

use sqlock_tests::signal::is_alive;

use crate::support::World;

#[tokio::test]
async fn the_code_of_the_command_is_passed_on() {
    let world = World::new().await;
    for code in [0, 1, 42, 75, 255] {
        let ended = world
            .run(&["k"], &format!("echo out; exit {code}"))
            .ended()
            .await;
        ended.assert_code(code);
        assert_eq!(
            (ended.stdout.as_str(), ended.stderr.as_str()),
            ("out\n", "")
        );
    }
    world.until_free().await;
}

#[tokio::test]
async fn a_command_ended_by_a_signal_gives_128_and_the_signal() {
    let world = World::new().await;
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("USR1", 138)] {
        let ended = world
            .run(&["k"], &format!("kill -{signal} $$"))
            .ended()
            .await;
        ended.assert_code(code);
    }
}

#[tokio::test]
async fn a_command_that_is_not_there_is_told_before_any_wait() {
    let world = World::new().await;
    let _holder = world.run(&["k"], "touch started; exec sleep 600");
    world.until("started").await;
    for (program, code) in [("no-such-program", 127), ("/no/such", 127), ("/etc", 126)] {
        let command = world.sqlock(&["run", "k", "--", program]);
        let ended = world.start(command).ended().await;
        ended.assert_code(code);
        assert!(
            ended.stderr.starts_with(&format!("sqlock: {program}: ")),
            "{ended:?}"
        );
    }
}

#[tokio::test]
async fn a_command_that_the_system_refuses_leaves_no_lock() {
    let world = World::new().await;
    for (name, text, code) in [
        ("no-interpreter", "#!/no/such/interpreter\n", 127),
        ("no-directory-for-it", "#!/etc/passwd\n", 126),
    ] {
        let path = world.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let command = world.sqlock(&["run", "k", "--", path.to_str().unwrap()]);
        world.start(command).ended().await.assert_code(code);
    }
    world.until_free().await;
}

#[tokio::test]
async fn usage_has_a_code_of_its_own() {
    let world = World::new().await;
    for arguments in [
        &["run"][..],
        &["run", "k"],
        &["run", "", "--", "true"],
        &["run", "--wait", "soon", "k", "--", "true"],
        &["run", "--backend", "none", "k", "--", "true"],
        &["run", "--url", "mysql://h/d", "k", "--", "true"],
        &["run", "--url", "postgres://h:port/d", "k", "--", "true"],
        &["walk"],
    ] {
        world
            .start(world.sqlock(arguments))
            .ended()
            .await
            .assert_code(64);
    }
    let help = world.start(world.sqlock(&["run", "--help"])).ended().await;
    help.assert_code(0);
    assert!(
        help.stdout.contains("sqlock run --no-wait nightly-report"),
        "{help:?}"
    );
    assert!(!help.stdout.contains(&world.database.url()), "{help:?}");
}

#[tokio::test]
async fn without_a_url_both_ways_to_give_one_are_named() {
    let world = World::new().await;
    for url in [None, Some("")] {
        let mut command = world.sqlock(&["run", "--backend", "session", "k", "--", "true"]);
        match url {
            None => command.env_remove("DATABASE_URL"),
            Some(url) => command.env("DATABASE_URL", url),
        };
        let ended = world.start(command).ended().await;
        ended.assert_code(64);
        let message = &ended.stderr;
        assert!(
            message.contains("--url") && message.contains("DATABASE_URL"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn the_command_knows_its_lock() {
    let world = World::new().await;
    let script = "echo \"$SQLOCK_KEY\" \"${SQLOCK_TOKEN-none}\"; cat";
    let mut command = world.sqlock(&["run", "daily report/ü", "--", "sh", "-c", script]);
    command.env("SQLOCK_TOKEN", "of another lock");
    fs::write(world.path("input"), "from standard input\n").unwrap();
    command.stdin(fs::File::open(world.path("input")).unwrap());
    let ended = world.start(command).ended().await;
    ended.assert_code(0);
    assert_eq!(ended.stdout, "daily report/ü none\nfrom standard input\n");
}

#[tokio::test]
async fn the_command_inherits_nothing_of_ours() {
    let world = World::new().await;
    let script = "grep -E '^Sig(Pnd|Blk|Ign):' /proc/self/status; ls -1 /proc/self/fd | wc -l";
    let bare = std::process::Command::new("env")
        .args(["--default-signal", "sh", "-c", script])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let ended = world.run(&["k"], script).ended().await;
    ended.assert_code(0);
    assert_eq!(ended.stdout, String::from_utf8(bare.stdout).unwrap());
}

#[tokio::test]
async fn what_the_command_leaves_behind_runs_on_without_the_lock() {
    let world = World::new().await;
    let script = "sleep 600 >/dev/null 2>&1 & echo $! >left; exit 3";
    world.run(&["k"], script).ended().await.assert_code(3);
    let left = world.pid("left").await;
    world.until_free().await;
    assert!(is_alive(left));
    sqlock_tests::signal::kill(left);
}
