//! Encrypted connections, to a server with a certificate of its own.

use std::{fs, path::Path};

use sqlock_tests::{PostgresServer, TestDatabase, eventually};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use tokio::process::Command;

use crate::support::{Ended, PATIENCE, World};

/// A server that encrypts, whose certificate is for 127.0.0.1 and of an authority of the test's own,
/// `ca.crt`; there is another authority, `other.crt`.
async fn world_with_tls() -> World {
    let world = World::on(PostgresServer::start(&[]).await.database().await);
    let directory = world.path(".");
    for authority in ["ca", "other"] {
        let subject = format!("/CN=sqlock test {authority}");
        let (key, certificate) = (format!("{authority}.key"), format!("{authority}.crt"));
        let mut arguments = vec!["req", "-x509", "-subj", &subject, "-days", "2"];
        arguments.extend(NEW_KEY);
        arguments.extend(["-keyout", &key, "-out", &certificate]);
        openssl(&directory, &arguments).await;
    }
    let mut request = vec!["req", "-subj", "/CN=server"];
    request.extend(NEW_KEY);
    request.extend(["-keyout", "server.key", "-out", "server.csr"]);
    openssl(&directory, &request).await;
    fs::write(world.path("names"), "subjectAltName = IP:127.0.0.1\n").unwrap();
    let sign = "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
                -extfile names -out server.crt";
    openssl(&directory, &sign.split_whitespace().collect::<Vec<_>>()).await;
    install(&world, &[]).await;
    world
}

const NEW_KEY: [&str; 5] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
];

async fn openssl(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("openssl");
    command.args(arguments).current_dir(directory);
    let output = command.output().await.expect("openssl runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// Has the server write the files, as they must be its own, and use them.
async fn install(world: &World, more: &[&str]) {
    let mut connection = world.database.connect().await;
    let mut sql = Vec::new();
    for name in ["server.key", "server.crt"] {
        let text = fs::read_to_string(world.path(name)).unwrap();
        let lines: Vec<_> = text.lines().map(|line| format!("'{line}'")).collect();
        let program = format!("umask 077 && cat >{name}");
        sql.push(format!(
            "copy (select unnest(array[{}])) to program '{program}'",
            lines.join(", ")
        ));
    }
    sql.push("alter system set ssl = on".to_owned());
    sql.extend(more.iter().map(|&more| more.to_owned()));
    sql.push("select pg_reload_conf()".to_owned());
    for sql in sql {
        let statement = sqlx::raw_sql(AssertSqlSafe(sql));
        statement.execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    eventually(PATIENCE, async || is_encrypted(&world.database).await).await;
}

/// Whether a connection that asks for no more than the default is.
async fn is_encrypted(database: &TestDatabase) -> bool {
    let mut connection = database.connect().await;
    let setting = sqlx::raw_sql("show ssl").fetch_one(&mut connection).await;
    setting.unwrap().get::<String, _>(0) == "on"
}

fn url(world: &World, host: &str, query: &str) -> String {
    let port = world.database.options().get_port();
    let name = world.database.name();
    format!("postgres://postgres@{host}:{port}/{name}?{query}")
}

/// Whoever is not trusted now is not trusted later: that is not waited for. Files may come.
async fn run(world: &World, backend: &str, url: &str, script: &str) -> Ended {
    let wait = if url.contains("missing") { "0s" } else { "10m" };
    let arguments = ["--wait", wait, "--backend", backend, "--url", url, "k"];
    world.run(&arguments, script).ended().await
}

#[tokio::test]
async fn a_server_that_is_verified_is_used() {
    let world = world_with_tls().await;
    let url = url(
        &world,
        "127.0.0.1",
        "sslmode=verify-full&sslrootcert=ca.crt",
    );
    for backend in ["session", "xact", "ttl"] {
        let script = "touch started; until [ -e go ]; do sleep 0.05; done";
        let held = world.run(&["--backend", backend, "--url", &url, "k"], script);
        world.until("started").await;
        let mut connection = world.database.connect().await;
        let plain = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid) \
                     where not ssl and application_name like 'sqlock run%'";
        let plain = sqlx::raw_sql(plain).fetch_one(&mut connection).await;
        assert_eq!(plain.unwrap().get::<i64, _>(0), 0, "{backend}");
        if backend != "ttl" {
            world.until_sessions(1).await;
        }
        world.write("go");
        let ended = held.ended().await;
        ended.assert_code(0);
        for name in ["started", "go"] {
            fs::remove_file(world.path(name)).unwrap();
        }
    }
    let doctor = world.start(world.sqlock(&["doctor", &url])).ended().await;
    doctor.assert_code(0);
}

#[tokio::test]
async fn a_server_that_is_not_whom_it_should_be_is_refused() {
    let world = world_with_tls().await;
    for (host, query, code) in [
        // of another authority, of one that the system does not know, and of another name
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=other.crt", 69),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=other.crt", 69),
        ("127.0.0.1", "sslmode=verify-full", 69),
        ("localhost", "sslmode=verify-full&sslrootcert=ca.crt", 69),
        (
            "127.0.0.1",
            "sslmode=verify-full&sslrootcert=missing.crt",
            69,
        ),
        // where less is asked for, less is checked
        ("localhost", "sslmode=verify-ca&sslrootcert=ca.crt", 0),
        ("127.0.0.1", "sslmode=require", 0),
        ("127.0.0.1", "sslmode=prefer", 0),
        ("127.0.0.1", "sslmode=disable", 0),
    ] {
        let url = url(&world, host, query);
        for backend in ["session", "xact", "ttl"] {
            let ended = run(&world, backend, &url, "touch ran").await;
            assert_eq!(
                ended.code,
                Some(code),
                "{host} {query} {backend}: {ended:?}"
            );
            assert_eq!(world.has("ran"), code == 0, "{host} {query} {backend}");
            fs::remove_file(world.path("ran")).ok();
        }
    }
}

/// Where encryption is asked for, there is no way without.
#[tokio::test]
async fn a_server_that_does_not_encrypt_is_refused() {
    let world = World::new().await;
    for mode in ["require", "verify-ca", "verify-full"] {
        let url = url(&world, "127.0.0.1", &format!("sslmode={mode}"));
        for backend in ["session", "xact", "ttl"] {
            let ended = run(&world, backend, &url, "touch ran").await;
            ended.assert_code(69);
            assert!(ended.stderr.to_lowercase().contains("tls"), "{ended:?}");
        }
    }
    assert!(!world.has("ran"));
}
