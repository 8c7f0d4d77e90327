//! A process that is stopped past the end of its lease.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use sqlock_tests::{TestDatabase, signal};

use crate::{
    support::{PATIENCE, ask, execute},
    tools::TTL,
    world::{World, everywhere},
};

/// A process that holds a lease, and says what it believes when it is asked.
struct Holder {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Holder {
    fn start(world: &World, key: &str) -> (Self, i64) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hold-lease"))
            .args([&world.url(), key, &TTL.as_millis().to_string()])
            .arg(TestDatabase::url(world))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut holder = Self {
            child,
            input,
            output,
        };
        let token = holder.line().parse().expect("a token");
        (holder, token)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn ask(&mut self, question: &str) -> String {
        writeln!(self.input, "{question}").expect("it reads");
        self.line()
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

const WRITE: &str = "update resource set last_token = $1 where last_token < $1";

/// Case 27: before the process does anything else, it knows that it holds nothing any more; and if
/// it went on all the same, the resource would refuse.
#[test]
fn a_process_that_was_stopped_finds_its_lease_over() {
    everywhere(async |world| {
        let mut connection = world.connect().await;
        execute(
            &mut connection,
            "create table resource (last_token bigint not null); insert into resource values (0)",
        )
        .await;
        let (mut paused, old) = Holder::start(&world, "job");
        assert_eq!(
            paused.ask("believes"),
            "valid=true lost=false protected=running"
        );
        assert_eq!(paused.ask("write"), "1 row");
        signal::pause(paused.pid());

        let next = world.node().acquire_within("job", PATIENCE).await.unwrap();
        let token = next.token().unwrap().get();
        assert!(token > old);
        let written = sqlx::query(WRITE)
            .bind(token)
            .execute(&mut connection)
            .await
            .unwrap();
        assert_eq!(written.rows_affected(), 1);

        // asked while it is stopped, so that this is the first thing that it sees
        writeln!(paused.input, "believes").unwrap();
        signal::resume(paused.pid());
        assert_eq!(paused.line(), "valid=false lost=true protected=stopped");
        assert_eq!(paused.ask("write"), "0 rows");
        assert!(next.is_valid());
        let last: i64 = ask(&mut connection, "select last_token from resource").await;
        assert_eq!(last, token);
    });
}

/// A holder that is killed leaves its key at its expiry.
#[test]
fn a_killed_holder_is_succeeded_after_the_ttl() {
    everywhere(async |world| {
        let (holder, old) = Holder::start(&world, "job");
        signal::kill(holder.pid());
        let locks = world.node();
        assert!(locks.try_acquire("job").await.unwrap().is_none());
        let lease = locks.acquire_within("job", PATIENCE).await.unwrap();
        assert!(lease.token().unwrap().get() > old);
    });
}
