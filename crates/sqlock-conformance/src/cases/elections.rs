//! One of many nodes leads. Capability `elections`.

use std::{
    future::{Future, pending},
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use rand::Rng;
use sqlock_core::{Election, ElectionWatch, Error, Locks, Standing, TellsLoss, Term};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use crate::{
    Harness, LossHarness, World,
    support::{Pace, Section, join_all, poll_times, random, within},
};

const RETRY: Duration = Duration::from_millis(5);

/// Never two, whatever node they are of; and each term's token is above the last, where the backend
/// gives tokens.
pub async fn one_leads_at_a_time<H: Harness<Backend: TellsLoss>>(world: World<H>) {
    const TERMS: usize = 6;
    let (section, last) = (Arc::new(Section::default()), Arc::new(AtomicI64::new(0)));
    let mut nodes = JoinSet::new();
    for _ in 0..3 {
        let election = stand(&world.node().await);
        let (section, last) = (Arc::clone(&section), Arc::clone(&last));
        let mut terms = 0;
        nodes.spawn(election.run(move |term| {
            let (section, last) = (Arc::clone(&section), Arc::clone(&last));
            terms += 1;
            let is_last = terms == TERMS;
            async move {
                let _inside = section.enter();
                term.check().unwrap();
                if let Some(token) = term.token() {
                    let before = last.swap(token.get(), Ordering::SeqCst);
                    assert!(before < token.get(), "{token:?} after {before}");
                }
                sleep(Duration::from_millis(2)).await;
                if is_last {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            }
        }));
    }
    for ended in join_all(nodes).await {
        ended.unwrap();
    }
    assert_eq!(section.entries(), 3 * TERMS);
}

/// A leader that is stopped has released when its election returns, and the next one leads.
pub async fn the_next_leads_after_a_stop<H: Harness<Backend: TellsLoss>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let mut first = Node::start(&one);
    first.leads::<H>().await;
    let mut second = Node::start(&other);
    for round in 0..4 {
        let (watch, term) = (first.watch.clone(), first.watch.standing());
        first.stop::<H>().await;
        assert!(!watch.is_leading(), "round {round}");
        if let Standing::Leading(term) = term {
            assert!(term.check().is_err(), "round {round}");
        }
        second.leads::<H>().await;
        first = Node::start([&one, &other][round % 2]);
        std::mem::swap(&mut first, &mut second);
    }
    first.stop::<H>().await;
    second.stop::<H>().await;
    world.until_free().await;
}

/// A leader whose lock is lost leads no more, its body has stopped, and another one leads, whose
/// backend is chosen at run time.
pub async fn a_leader_that_is_lost_steps_down<H: LossHarness<Backend: TellsLoss>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let first = Node::start(&one);
    let term = first.leads::<H>().await;
    let body = within(H::PATIENCE, "the first term's body", first.body()).await;
    let second = Node::start(&other.erased_tells_loss());
    world.harness().break_holder(&one).await;
    // what the body held is dropped with it
    within(H::NOTICE, "the body's end", body).await;
    assert!(matches!(term.check(), Err(Error::Lost { .. })));

    // either may be the next; in the end it is the other's turn
    first.stop::<H>().await;
    let next = second.leads::<H>().await;
    if let (Some(before), Some(after)) = (term.token(), next.token()) {
        assert!(before < after, "{before:?}, {after:?}");
    }
    assert!(!term.is_leading());
    second.stop::<H>().await;
}

/// An election that is dropped at any point leaves nothing.
pub async fn a_dropped_election_leaves_nothing<H: Harness<Backend: TellsLoss>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for pace in [Pace::AtOnce, Pace::AsItGoes] {
        for polls in 0..12 {
            let mut running = Box::pin(stand(&one).run(|_| async {
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                ControlFlow::<()>::Continue(())
            }));
            assert!(poll_times(running.as_mut(), polls, pace).await.is_none());
            drop(running);
            let guard = world.take(&other, "leader", "it was dropped").await;
            guard.release().await.unwrap();
        }
    }
}

/// A body that panics ends the election, and the lock with it.
pub async fn a_panic_of_the_body_ends_its_term<H: Harness<Backend: TellsLoss>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let election = stand(&one);
    let watch = election.watch();
    let running = tokio::spawn(election.run(|term| async move {
        term.check().unwrap();
        if term.is_leading() {
            panic!("as it should be");
        }
        ControlFlow::Break(())
    }));
    let ended = within(H::PATIENCE, "the panic", running).await;
    assert!(ended.unwrap_err().is_panic());
    assert!(!watch.health().is_ready());
    let guard = world.take(&other, "leader", "it panicked").await;
    guard.release().await.unwrap();
}

/// Leaders and followers that are aborted at random: never two, and nothing is left.
pub async fn elections_aborted_at_random<H: Harness<Backend: TellsLoss>>(world: World<H>) {
    let nodes = [world.node().await, world.node().await];
    let section = Arc::new(Section::default());
    let mut random = random();
    let mut elections = JoinSet::new();
    for task in 0..30 {
        let section = Arc::clone(&section);
        let handle = elections.spawn(stand(&nodes[task % 2]).run(move |term| {
            let section = Arc::clone(&section);
            async move {
                let _inside = section.enter();
                term.check().unwrap();
                sleep(Duration::from_millis(1)).await;
                ControlFlow::<()>::Continue(())
            }
        }));
        let lives = Duration::from_micros(random.random_range(0..60_000));
        tokio::spawn(async move {
            sleep(lives).await;
            handle.abort();
        });
    }
    while let Some(ended) = elections.join_next().await {
        assert!(ended.unwrap_err().is_cancelled(), "two lead together");
    }
    let guard = world.take(&nodes[1], "leader", "all are gone").await;
    guard.release().await.unwrap();
}

fn stand<B: TellsLoss>(locks: &Locks<B>) -> Election<B> {
    locks.election("leader").unwrap().retry(RETRY)
}

/// A node that stands until it is stopped.
struct Node {
    watch: ElectionWatch,
    bodies: tokio::sync::watch::Receiver<Option<Arc<tokio::sync::Notify>>>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<Option<()>, Error>>,
}

impl Node {
    fn start<B: TellsLoss>(locks: &Locks<B>) -> Self {
        let election = stand(locks);
        let (stop, stopped) = oneshot::channel::<()>();
        let (begun, bodies) = tokio::sync::watch::channel(None);
        Self {
            watch: election.watch(),
            bodies,
            stop,
            running: tokio::spawn(election.run_until(
                async {
                    stopped.await.ok();
                },
                move |_| {
                    let over = OnDrop(Arc::default());
                    begun.send_replace(Some(Arc::clone(&over.0)));
                    async move {
                        let _over = over;
                        pending().await
                    }
                },
            )),
        }
    }

    async fn leads<H: Harness>(&self) -> Term {
        let mut watch = self.watch.clone();
        let leads = async {
            loop {
                if let Standing::Leading(term) = watch.standing() {
                    return term;
                }
                watch.changed().await.expect("the election goes on");
            }
        };
        within(H::PATIENCE, "the node's turn", leads).await
    }

    /// The end of the body that runs now.
    async fn body(&self) -> impl Future<Output = ()> + use<> {
        let mut bodies = self.bodies.clone();
        let body = bodies.wait_for(Option::is_some).await;
        let over = body.expect("it runs").clone().expect("it has begun");
        async move { over.notified().await }
    }

    async fn stop<H: Harness>(self) {
        self.stop.send(()).expect("the election goes on");
        let ended = within(H::PATIENCE, "the end of the election", self.running).await;
        assert!(ended.unwrap().unwrap().is_none());
    }
}

struct OnDrop(Arc<tokio::sync::Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
