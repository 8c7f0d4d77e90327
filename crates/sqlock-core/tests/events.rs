//! What is told to `tracing`, and that names of keys do not leave the debug level unasked.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod capture;

use std::time::Duration;

use capture::{Event, captured};
use sqlock_core::{KeyVisibility, Locks, LossCause, MemoryBackend};
use tracing::Level;

const SECRET: &str = "customer/jane-doe";

fn the<'a>(events: &'a [Event], message: &str) -> &'a Event {
    let found: Vec<_> = events
        .iter()
        .filter(|event| event.message == message)
        .collect();
    assert_eq!(found.len(), 1, "{message}: {events:#?}");
    found[0]
}

fn assert_names(event: &Event, backend: &str, duration: &str) {
    let id = sqlock_core::LockKey::new(SECRET).unwrap().id().to_string();
    assert_eq!(event.field("backend"), backend);
    assert_eq!(event.field("key"), SECRET);
    assert_eq!(event.field("id"), id);
    assert!(event.field(duration).ends_with('s'), "{event:?}");
    assert_eq!(event.level, Level::DEBUG);
}

#[test]
fn grants_and_ends_are_told() {
    let events = captured(async {
        let locks = Locks::new(MemoryBackend::new());
        locks
            .acquire(SECRET)
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    });
    assert_names(the(&events, "lock granted"), "memory", "waited");
    let ended = the(&events, "lock ended");
    assert_names(ended, "memory", "held");
    assert_eq!(ended.field("how"), "released");
    assert_eq!(events.len(), 2, "{events:#?}");
}

/// A wait that lasts is told while it lasts.
#[test]
fn waits_are_told() {
    let events = captured(async {
        let backend = MemoryBackend::new();
        let other = Locks::new(backend.another_node());
        let locks = Locks::new(backend);
        let guard = other.acquire(SECRET).await.unwrap();
        let wait = locks.acquire_within(SECRET, Duration::from_millis(200));
        wait.await.unwrap_err();
        guard.release().await.unwrap();
    });
    assert_names(the(&events, "lock awaited"), "memory", "waited");
    let messages: Vec<_> = events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(
        messages,
        ["lock granted", "lock awaited", "lock refused", "lock ended"]
    );
}

#[test]
fn drops_and_roll_backs_are_told() {
    let how = |events: Vec<Event>| the(&events, "lock ended").field("how").to_owned();
    let dropped = captured(async {
        let locks = Locks::new(MemoryBackend::new());
        drop(locks.acquire(SECRET).await.unwrap());
    });
    assert_eq!(how(dropped), "dropped");
    let rolled_back = captured(async {
        let locks = Locks::new(MemoryBackend::new());
        locks
            .acquire(SECRET)
            .await
            .unwrap()
            .roll_back()
            .await
            .unwrap();
    });
    assert_eq!(how(rolled_back), "rolled back");
}

#[test]
fn refusals_and_failures_are_told() {
    let events = captured(async {
        let backend = MemoryBackend::new();
        let locks = Locks::new(backend.clone());
        let guard = locks.acquire("another").await.unwrap();
        backend.faults().acquires().fail_next();
        locks.acquire(SECRET).await.unwrap_err();
        guard.release().await.unwrap();

        let _guard = locks.acquire("x").await.unwrap();
        let late = locks
            .lock_all([SECRET, "x"])
            .within(Duration::from_millis(1));
        late.await.unwrap_err();
    });
    let failed = the(&events, "acquire failed");
    assert_names(failed, "memory", "waited");
    assert_eq!(failed.field("error"), "memory: the server is unavailable");
    the(&events, "lock refused");
}

/// The loss is a warning, without the name; the name is there at debug level.
#[test]
fn a_loss_is_a_warning_without_the_name() {
    let events = captured(lose(KeyVisibility::DebugOnly));
    let warnings: Vec<_> = events
        .iter()
        .filter(|event| event.level == Level::WARN)
        .collect();
    assert_eq!(warnings.len(), 1, "{events:#?}");
    assert_eq!(warnings[0].message, "lock lost");
    assert_eq!(warnings[0].field("cause"), "its connection was closed");
    assert_eq!(warnings[0].field("backend"), "memory");
    assert!(!warnings[0].has("key"));
    for event in events.iter().filter(|event| event.level < Level::DEBUG) {
        assert!(!format!("{event:?}").contains(SECRET), "{event:?}");
    }
    let debug = events
        .iter()
        .find(|event| event.message == "lock lost" && event.has("key"));
    assert_eq!(debug.expect("the name, for who debugs").level, Level::DEBUG);
}

#[test]
fn names_are_told_where_that_is_wanted() {
    let events = captured(lose(KeyVisibility::Always));
    let lost = the(&events, "lock lost");
    assert_eq!((lost.level, lost.field("key")), (Level::WARN, SECRET));
}

/// An erased guard speaks once, of the backend that holds the lock.
#[test]
fn an_erased_guard_speaks_once() {
    let events = captured(async {
        let locks = Locks::new(MemoryBackend::new()).erased();
        locks
            .acquire(SECRET)
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        drop(locks.acquire("another").await.unwrap());
    });
    let ends: Vec<_> = events
        .iter()
        .filter(|event| event.message == "lock ended")
        .collect();
    assert_eq!(ends.len(), 2, "{events:#?}");
    assert_names(ends[0], "memory", "held");
}

/// The span says what is asked for; at debug level, since it names the key.
#[test]
fn the_span_of_an_acquire() {
    let spans = capture::spans(async {
        let locks = Locks::new(MemoryBackend::new());
        let guard = locks.lock_all([SECRET]).shared().acquire().await.unwrap();
        drop(guard);
        drop(locks.try_acquire(SECRET).await.unwrap());
    });
    assert_eq!(spans.len(), 2, "{spans:#?}");
    for (span, (mode, wait)) in spans
        .iter()
        .zip([("shared", "true"), ("exclusive", "false")])
    {
        assert_eq!(
            (span.message.as_str(), span.level),
            ("acquire", Level::DEBUG)
        );
        assert_eq!(span.field("backend"), "memory");
        assert_eq!(span.field("key"), SECRET);
        assert_eq!(span.field("keys"), "1");
        assert_eq!((span.field("mode"), span.field("wait")), (mode, wait));
        assert!(span.has("id"));
    }
}

async fn lose(visibility: KeyVisibility) {
    let backend = MemoryBackend::new();
    let locks = Locks::builder(backend.clone())
        .key_visibility(visibility)
        .build();
    let guard = locks.acquire(SECRET).await.unwrap();
    backend.faults().lose_all(LossCause::ConnectionClosed);
    guard.release().await.unwrap_err();
}
