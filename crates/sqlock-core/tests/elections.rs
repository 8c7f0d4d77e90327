//! Elections over locks in memory: what the suite for all backends cannot look at.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::{
    future::pending,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sqlock_core::{Error, Health, Locks, LossCause, MemoryBackend, Standing, Term};
use tokio::sync::oneshot;

fn locks() -> Locks<MemoryBackend> {
    Locks::new(MemoryBackend::new())
}

async fn forever(_: Term) -> ControlFlow<()> {
    pending().await
}

/// The standing is told from the first term to the end, and what was told stays true.
#[tokio::test(start_paused = true)]
async fn the_watch_tells_every_step() {
    let locks = locks();
    let election = locks.election("leader").unwrap().label("node 1");
    let mut watch = election.watch();
    assert_eq!(watch.health(), Health::Stopped);
    assert!(!watch.health().is_ready());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(election.run_until(async { drop(stopped.await) }, forever));

    let mut standing = watch.changed().await.unwrap();
    while !matches!(standing, Standing::Leading(_)) {
        standing = watch.changed().await.unwrap();
    }
    let Standing::Leading(term) = standing else {
        unreachable!()
    };
    assert!(term.is_leading() && watch.is_leading() && watch.health().is_ready());
    assert_eq!(term.key().name(), Some("leader"));

    stop.send(()).unwrap();
    assert!(running.await.unwrap().unwrap().is_none());
    assert!(matches!(
        term.check(),
        Err(Error::Lost {
            cause: LossCause::SteppedDown,
            ..
        })
    ));
    assert!(matches!(watch.standing(), Standing::Stopped));
    while watch.changed().await.is_some() {}
    assert_eq!(locks.backend().held(), 0);
}

/// Errors that may pass are told and outlasted; those that do not are the end.
#[tokio::test(start_paused = true)]
async fn errors_that_may_pass_are_outlasted() {
    let locks = locks();
    locks.backend().faults().acquires().fail();
    let election = locks.election("leader").unwrap();
    let mut watch = election.watch();
    let running = tokio::spawn(election.run(|_| async { ControlFlow::Break(1) }));
    let mut seen = watch.changed().await.unwrap();
    while !matches!(seen, Standing::Failing(_)) {
        seen = watch.changed().await.unwrap();
    }
    assert_eq!(watch.health(), Health::Failing);
    locks.backend().faults().acquires().heal();
    assert_eq!(running.await.unwrap().unwrap(), 1);

    locks.shutdown().await.unwrap();
    let ended = locks.election("leader").unwrap().run(forever).await;
    assert!(matches!(ended, Err(Error::ShutDown { .. })), "{ended:?}");
}

/// A term that others look at is over with its election, even where that was just dropped.
#[tokio::test]
async fn a_dropped_election_ends_its_term() {
    let locks = locks();
    let election = locks.election("leader").unwrap();
    let watch = election.watch();
    let (sender, term) = oneshot::channel();
    let mut sender = Some(sender);
    let running = tokio::spawn(election.run(move |term| {
        let sent = sender.take().map(|sender| sender.send(term));
        async move {
            drop(sent);
            pending::<ControlFlow<()>>().await
        }
    }));
    let term: Term = term.await.unwrap();
    assert!(term.is_leading());
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert!(!term.is_leading() && !watch.is_leading());
    assert_eq!(locks.backend().held(), 0);
}

/// Who gives up its term lets others have a turn.
#[tokio::test(start_paused = true)]
async fn those_who_resign_stand_again_after_a_pause() {
    let backend = MemoryBackend::new();
    let terms = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let mut nodes = tokio::task::JoinSet::new();
    for node in 0..2 {
        let locks = Locks::new(backend.another_node());
        let election = locks.election("leader").unwrap();
        let terms = Arc::clone(&terms);
        nodes.spawn(election.run(move |_| {
            let mine = terms[node].fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                match mine {
                    3 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            }
        }));
    }
    while let Some(ended) = nodes.join_next().await {
        ended.unwrap().unwrap();
    }
    assert_eq!(terms[0].load(Ordering::SeqCst), 3);
    assert_eq!(terms[1].load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn timings_that_cannot_be_are_refused() {
    for pause in [Duration::ZERO, Duration::MAX] {
        let election = locks().election("leader").unwrap().retry(pause);
        let refused = election.run(forever).await;
        assert!(
            matches!(
                refused,
                Err(Error::InvalidOption {
                    option: "retry",
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    assert!(matches!(
        locks().election("").err(),
        Some(Error::InvalidKey(_))
    ));
}
