//! Three processes, of which the leader is killed, paused and stopped, again and again: never do two
//! believe that they lead at one instant, and each term's token is above the last.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use sqlock::session::Fencing;
use sqlock_tests::{TestDatabase, signal};
use tempfile::TempDir;

use crate::{
    fleet::{Fleet, pid},
    history::{contradictions, inversions, read},
    support::run,
    tools::database,
};

const TTL: Duration = Duration::from_secs(1);

/// How many for each backend: `SQLOCK_ELECTION_ROUNDS`, or enough for every day.
fn rounds() -> usize {
    let wanted = std::env::var("SQLOCK_ELECTION_ROUNDS").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(6)
}

#[test]
fn leases_have_one_leader() {
    let database = with_a_database();
    play("ttl", &database, |fleet, leader| {
        signal::pause(pid(leader));
        // its lease runs out
        let next = fleet.next_leader();
        signal::resume(pid(leader));
        next
    });
}

#[test]
fn sessions_have_one_leader() {
    let database = with_a_database();
    run(async || Fencing::new().create(&database.url()).await.unwrap());
    play("session", &database, |fleet, leader| {
        signal::pause(pid(leader));
        // its session is kept
        let other = fleet.begins_within(TTL);
        signal::resume(pid(leader));
        assert_eq!(other, None, "another leads beside one that is paused");
        fleet.stop(leader);
        fleet.next_leader()
    });
}

fn play(backend: &'static str, database: &TestDatabase, pause: impl Fn(&mut Fleet, u32) -> u32) {
    let directory = TempDir::new().expect("a directory");
    let notes = directory.path().join("notes");
    let mut random = StdRng::seed_from_u64(7);
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    let mut fleet = Fleet::start(backend, database.url(), TTL, notes.clone());
    let mut leader = fleet.next_leader();
    for round in 0..rounds() {
        let works = Duration::from_millis(random.random_range(30..130));
        if let Some(another) = fleet.begins_within(works) {
            leader = fleet.latest(another);
        }
        let started = Instant::now();
        let what = ["killed", "paused", "stopped"][round % 3];
        leader = match what {
            "killed" => {
                fleet.kill(leader);
                fleet.next_leader()
            }
            "paused" => pause(&mut fleet, leader),
            _ => {
                fleet.stop(leader);
                fleet.next_leader()
            }
        };
        times.entry(what).or_default().push(started.elapsed());
    }
    drop(fleet);
    for (what, times) in &mut times {
        times.sort_unstable();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        println!(
            "{backend}: {} {what}: next leads after {median:?}, {longest:?} at most",
            times.len()
        );
    }
    let terms = read(&notes);
    println!("{backend}: {} terms", terms.len());
    assert!(terms.len() >= rounds() / 2, "{} terms", terms.len());
    let contradictions = contradictions(&terms);
    assert!(contradictions.is_empty(), "{contradictions:?}");
    let inversions = inversions(&terms);
    assert!(inversions.is_empty(), "{inversions:?}");
}

fn with_a_database() -> TestDatabase {
    let mut made = None;
    run(async || made = Some(database().await));
    made.expect("a database")
}
