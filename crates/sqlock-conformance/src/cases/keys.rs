//! What can name a lock, and which names are one lock.

use sqlock_core::{Error, InvalidKey, LockKey};

use crate::{Harness, World, support::A_MOMENT};

/// Who holds one key does not hold another.
pub async fn two_keys_are_independent<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let first = one.acquire("a").await.unwrap();
    let second = one.acquire("b").await.unwrap();
    let third = other.acquire("c").await.unwrap();
    world.until_held(3).await;
    second.release().await.unwrap();
    world.until_held(2).await;
    assert!(other.try_acquire("a").await.unwrap().is_none());
    assert!(one.try_acquire("c").await.unwrap().is_none());
    first.release().await.unwrap();
    third.release().await.unwrap();
}

/// Names that differ in case, in spaces, or in how a character is composed, are different locks.
pub async fn names_are_compared_byte_by_byte<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    for (name, twin) in [
        ("job", "Job"),
        ("job", "job "),
        ("caf\u{e9}", "cafe\u{301}"),
    ] {
        let guard = one.acquire(name).await.unwrap();
        let twin = other.try_acquire(twin).await.unwrap();
        twin.expect("a different lock").release().await.unwrap();
        guard.release().await.unwrap();
    }
}

/// Quotes, percent signs, and what else means something to somebody.
pub async fn any_character_can_be_in_a_name<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let names = [
        "it's",
        "\"quoted\"",
        "back\\slash\\",
        "$1",
        "%",
        "a/b c\td\ne",
        "'; select 1 --",
        "ロック🔒",
        "*",
        ":ns:",
        "-1",
        "\u{1}",
    ];
    for name in names {
        let guard = one.acquire(name).await.unwrap();
        assert_eq!(guard.key().name(), Some(name));
        assert!(other.try_acquire(name).await.unwrap().is_none(), "{name:?}");
        guard.release().await.unwrap();
    }
}

/// 512 bytes are allowed, and all of them count.
pub async fn the_longest_name_is_a_lock<H: Harness>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let name = "n".repeat(512);
    let twin = format!("{}m", &name[1..]);
    let guard = one.acquire(name.as_str()).await.unwrap();
    assert!(other.try_acquire(name).await.unwrap().is_none());
    assert!(other.try_acquire(twin).await.unwrap().is_some());
    guard.release().await.unwrap();
}

/// An invalid name is refused by every verb, and holds nothing.
pub async fn an_invalid_name_holds_nothing<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    let too_long = "n".repeat(513);
    for name in ["", "a\0b", too_long.as_str()] {
        refused(locks.try_acquire(name).await);
        refused(locks.acquire(name).await);
        refused(locks.acquire_within(name, A_MOMENT).await);
        refused(locks.acquire_all(["fine", name]).await);
        refused(locks.run_once(name, async |_| Ok::<_, Error>(())).await);
        refused(locks.with_lock(name, async |_| Ok::<_, Error>(())).await);
    }
    assert_eq!(world.harness().held().await, 0);
    assert!(locks.try_acquire("fine").await.unwrap().is_some());
}

/// The pairs that sqlock uses itself, and a request for no lock at all.
pub async fn reserved_pairs_and_no_keys_are_refused<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    let pair = locks.try_acquire((*sqlock_core::RESERVED_PAIR_CLASSES.start(), 7));
    let Err(Error::InvalidKey(InvalidKey::ReservedPair { .. })) = pair.await else {
        panic!("a reserved pair was not refused");
    };
    let Err(Error::InvalidKey(InvalidKey::NoKeys)) = locks.acquire_all([""; 0]).await else {
        panic!("a request for nothing was not refused");
    };
}

/// Equal names in different namespaces are different locks.
pub async fn namespaces_are_apart<H: Harness>(world: World<H>) {
    let locks = world.node().await;
    let plain = locks.acquire("job").await.unwrap();
    let billing = LockKey::in_namespace("billing", "job").unwrap();
    let shipping = LockKey::in_namespace("shipping", "job").unwrap();
    let first = locks.try_acquire(&billing).await.unwrap();
    let second = locks.try_acquire(&shipping).await.unwrap();
    assert!(first.is_some() && second.is_some());
    assert!(locks.try_acquire(billing).await.unwrap().is_none());
    plain.release().await.unwrap();
}

fn refused<T>(result: Result<T, Error>) {
    match result {
        Err(Error::InvalidKey(_)) => {}
        Err(other) => panic!("refused for another reason: {other:?}"),
        Ok(_) => panic!("an invalid name was accepted"),
    }
}
