//! Real runs. `just faults` makes many more of them.

use std::path::Path;

use sqlock_tests::lab::{Backend, Flaw, Outcome, Setup, Violation, Way, run};

/// A broken backend is to be found in so many.
const SEEDS: u64 = 10;

async fn outcome(seed: u64, setup: Setup) -> Outcome {
    let name = match setup.flaw {
        Some(flaw) => format!("{}-{flaw}-{seed}", setup.backend),
        None => format!("{}-{:?}-{seed}", setup.backend, setup.way),
    };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("faults")
        .join(name);
    let _ = std::fs::remove_dir_all(&directory);
    let program = env!("CARGO_BIN_EXE_lab-worker").into();
    run(seed, setup, program, &directory).await.unwrap()
}

async fn keeps_its_promises(backend: Backend, way: Way, seed: u64) {
    let setup = Setup {
        backend,
        way,
        flaw: None,
    };
    let Outcome {
        violations,
        history,
        ..
    } = outcome(seed, setup).await;
    let violations: Vec<_> = violations.iter().map(Violation::to_string).collect();
    assert_eq!(violations, [""; 0]);
    assert!(history.len() > 100, "too little happened to tell");
}

async fn is_convicted(backend: Backend, flaw: Flaw) {
    let setup = Setup {
        backend,
        way: Way::Direct,
        flaw: Some(flaw),
    };
    for seed in 1..=SEEDS {
        if !outcome(seed, setup).await.violations.is_empty() {
            return;
        }
    }
    panic!("{flaw} was not found in {SEEDS} runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn session_locks_keep_their_promises() {
    keeps_its_promises(Backend::Session, Way::Direct, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_keep_their_promises() {
    keeps_its_promises(Backend::Ttl, Way::Direct, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_keep_their_promises_behind_a_pooler() {
    keeps_its_promises(Backend::Ttl, Way::Pooled, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_locks_keep_their_promises_behind_a_pooler() {
    keeps_its_promises(Backend::Xact, Way::Pooled, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_asks_is_convicted() {
    is_convicted(Backend::Session, Flaw::NeverAsks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_works_outside_of_the_transaction_is_convicted() {
    is_convicted(Backend::Xact, Flaw::WorksOutside).await;
}

/// All flaws, each with the backend that it is a flaw of; takes minutes.
#[tokio::test(flavor = "multi_thread")]
async fn all_flaws_are_convicted() {
    if std::env::var_os("SQLOCK_ALL_FLAWS").is_none() {
        return;
    }
    let flaws = [
        (Backend::Session, Flaw::NeverAsks),
        (Backend::Session, Flaw::DeafToLoss),
        (Backend::Session, Flaw::Leaks),
        (Backend::Session, Flaw::NeverReleases),
        (Backend::Ttl, Flaw::NeverAsks),
        (Backend::Ttl, Flaw::DeafToLoss),
        (Backend::Ttl, Flaw::Leaks),
        (Backend::Xact, Flaw::NeverAsks),
        (Backend::Xact, Flaw::TrustsCommits),
        (Backend::Xact, Flaw::WorksOutside),
        (Backend::Xact, Flaw::Leaks),
    ];
    for (backend, flaw) in flaws {
        is_convicted(backend, flaw).await;
    }
}
