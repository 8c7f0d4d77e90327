//! The facade's examples, run as a newcomer would: as programs, with the URL of a database.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod example;
mod service;
#[path = "../support/mod.rs"]
mod support;

use sqlock_tests::TestDatabase;

use crate::{
    example::Example,
    support::{PATIENCE, ask, node, run, within},
};

#[test]
fn once_across_a_fleet() {
    run(async || {
        let database = TestDatabase::create().await;
        let guard = node(&database).await.acquire("daily-report").await.unwrap();
        let elsewhere = Example::start("once_across_a_fleet", &database);
        assert_eq!(elsewhere.finish().await, ["another node writes it"]);
        guard.release().await.unwrap();
        let here = Example::start("once_across_a_fleet", &database);
        assert_eq!(here.finish().await, ["wrote 7 pages"]);
    });
}

#[test]
fn waiting_with_a_budget() {
    run(async || {
        let database = TestDatabase::create().await;
        let free = Example::start("waiting_with_a_budget", &database);
        assert_eq!(free.finish().await, ["working on invoice/42"]);
        let _guard = node(&database).await.acquire("invoice/42").await.unwrap();
        let taken = Example::start("waiting_with_a_budget", &database);
        let said = taken.finish().await;
        assert!(
            said[0].starts_with("invoice/42 is taken; waited "),
            "{said:?}"
        );
    });
}

#[test]
fn work_in_the_transaction() {
    run(async || {
        let database = TestDatabase::create().await;
        let guard = node(&database).await.acquire("daily-report").await.unwrap();
        let elsewhere = Example::start("work_in_the_transaction", &database);
        assert_eq!(elsewhere.finish().await, ["another node writes it"]);
        guard.release().await.unwrap();
        let first = Example::start("work_in_the_transaction", &database);
        assert_eq!(first.finish().await, ["wrote today's report"]);
        let mut sql = database.connect().await;
        let reports: i64 = ask(&mut sql, "select count(*) from report").await;
        assert_eq!(reports, 1);
        // it may be tomorrow by now
        Example::start("work_in_the_transaction", &database)
            .finish()
            .await;
    });
}

#[test]
fn fenced_resource() {
    run(async || {
        let database = TestDatabase::create().await;
        for _ in 0..2 {
            let fenced = Example::start("fenced_resource", &database);
            let expected = [
                "the holder writes: true",
                "one that was paused writes: false",
            ];
            assert_eq!(fenced.finish().await, expected);
        }
        let mut sql = database.connect().await;
        let body: String = ask(&mut sql, "select body from page").await;
        assert_eq!(body, "new");
    });
}

#[test]
fn schedule_on_every_node() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut said = Vec::new();
        let mut nodes: Vec<_> = (0..3)
            .map(|_| Example::start("schedule_on_every_node", &database))
            .collect();
        for node in &mut nodes {
            said.push(node.line().await);
        }
        said.sort();
        let expected = [
            "another node writes it",
            "another node writes it",
            "wrote 7 pages",
        ];
        assert_eq!(said, expected);
    });
}

/// The next one leads long before the lease of the first would have run out, with a higher token.
#[test]
fn leader_election() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut first = Example::start("leader_election", &database);
        let earlier = token_of_leader(&mut first).await;
        let mut second = Example::start("leader_election", &database);
        first.terminate();
        assert_eq!(first.finish().await.last().unwrap(), "ended");
        let leading = token_of_leader(&mut second);
        let later = within(PATIENCE, "the next leader", leading).await;
        assert!(later > earlier, "{later} after {earlier}");
        second.terminate();
        assert_eq!(second.finish().await.last().unwrap(), "ended");
    });
}

async fn token_of_leader(node: &mut Example) -> i64 {
    loop {
        let line = node.line().await;
        if let Some(token) = line.strip_prefix("leading with token ") {
            return token.parse().unwrap();
        }
        assert_eq!(line, "following");
    }
}

#[test]
fn unit_test_with_memory() {
    run(async || {
        let database = TestDatabase::create().await;
        let silent = Example::start("unit_test_with_memory", &database);
        assert!(silent.finish().await.is_empty());
    });
}
