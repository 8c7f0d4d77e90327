//! Keys: their ids are part of the API, since plain SQL computes the same ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::fmt::Write;

use md5::{Digest, Md5};
use proptest::prelude::*;
use sqlock_core::{
    AdvisoryId, Error, InvalidKey, LockKey, Locks, MemoryBackend, RESERVED_PAIR_CLASSES,
};

/// What PostgreSQL 15 answered to `SELECT ('x' || md5($1))::bit(64)::bigint`.
#[test]
fn golden_ids_of_names() {
    let long = "x".repeat(512);
    for (name, id) in [
        ("daily-report", 2_067_039_765_893_743_488),
        ("plumless", 5_335_538_834_163_234_084),
        ("buckeroo", -6_295_561_069_451_357_204),
        ("a", 919_145_239_626_757_800),
        ("ロック", 7_448_073_147_365_354_954),
        ("invoice/42", 746_334_129_446_707_473),
        (" ", 8_220_739_050_724_508_201),
        (long.as_str(), -7_978_201_373_279_721_298),
    ] {
        let key = LockKey::new(name).unwrap();
        assert_eq!(key.id(), AdvisoryId::Bigint(id), "{name}");
    }
}

/// What PostgreSQL 15 answered to
/// `SELECT ('x' || md5(octet_length($1) || ':' || $1 || $2))::bit(64)::bigint`.
#[test]
fn golden_ids_in_namespaces() {
    for (namespace, name, id) in [
        ("billing", "daily-report", 1_145_736_627_428_684_131),
        ("b", "illingdaily-report", 3_515_171_680_083_699_851),
        ("größe", "x", -1_963_125_403_253_878_806),
        ("1:a", "b", 6_891_236_067_801_940_551),
    ] {
        let key = LockKey::in_namespace(namespace, name).unwrap();
        assert_eq!(key.id(), AdvisoryId::Bigint(id), "{namespace}, {name}");
    }
}

/// A pair that meets in crc32, and other ways in which 32 bits are too few.
#[test]
fn names_that_collide_elsewhere_do_not_here() {
    let id = |name| LockKey::new(name).unwrap().id();
    assert_ne!(id("plumless"), id("buckeroo"));
    assert_ne!(id("job"), id("Job"));
    assert_ne!(id("caf\u{e9}"), id("cafe\u{301}"));
}

#[test]
fn invalid_names_say_why() {
    let too_long = "n".repeat(513);
    for (name, why) in [
        ("", InvalidKey::Empty),
        ("a\0b", InvalidKey::ContainsNul),
        ("\0", InvalidKey::ContainsNul),
        (
            too_long.as_str(),
            InvalidKey::TooLong {
                bytes: 513,
                max: 512,
            },
        ),
    ] {
        assert_eq!(LockKey::new(name), Err(why.clone()));
        assert_eq!(LockKey::in_namespace("n", name), Err(why.clone()));
        assert_eq!(name.parse::<LockKey>(), Err(why));
    }
    let multibyte = "ロ".repeat(171);
    assert!(matches!(
        LockKey::new(multibyte),
        Err(InvalidKey::TooLong { bytes: 513, .. })
    ));
    LockKey::new("n".repeat(512)).unwrap();

    let long = "n".repeat(129);
    for namespace in ["", "a\0b", long.as_str()] {
        assert_eq!(
            LockKey::in_namespace(namespace, "k"),
            Err(InvalidKey::Namespace)
        );
    }
    LockKey::in_namespace("n".repeat(128), "k").unwrap();
}

#[test]
fn reserved_pairs_are_refused() {
    let (first, last) = RESERVED_PAIR_CLASSES.into_inner();
    for class in [first, first + 1, last] {
        assert_eq!(
            LockKey::from_pair(class, 0),
            Err(InvalidKey::ReservedPair { class })
        );
    }
    for class in [first - 1, last + 1, i32::MIN, -1, 0, i32::MAX] {
        let key = LockKey::from_pair(class, -5).unwrap();
        assert_eq!(key.id(), AdvisoryId::Pair(class, -5));
    }
}

#[test]
fn keys_are_shown_as_they_were_named() {
    let shown = |key: LockKey| (key.to_string(), format!("{key:?}"));
    assert_eq!(
        shown(LockKey::from_id(-42)),
        ("-42".into(), "LockKey(-42 = -42)".into())
    );
    let pair = LockKey::from_pair(7, -42).unwrap();
    assert_eq!(pair.to_string(), "7,-42");
    assert_eq!((pair.name(), pair.namespace()), (None, None));
    let named = LockKey::in_namespace("billing", "job").unwrap();
    assert_eq!(named.to_string(), "billing:job");
    assert_eq!(
        (named.name(), named.namespace()),
        (Some("job"), Some("billing"))
    );
    let debug = format!("{:?}", LockKey::new("daily-report").unwrap());
    assert_eq!(debug, "LockKey(daily-report = 2067039765893743488)");
}

/// The default namespace takes names, and leaves numbers and keys with a namespace alone.
#[tokio::test]
async fn the_default_namespace_takes_names_only() {
    let locks = Locks::builder(MemoryBackend::new())
        .namespace("billing")
        .build();
    let other = LockKey::in_namespace("shipping", "job").unwrap();
    for (guard, expected) in [
        (
            locks.acquire("job").await,
            LockKey::in_namespace("billing", "job").unwrap(),
        ),
        (locks.acquire(&other).await, other),
        (locks.acquire(7).await, LockKey::from_id(7)),
        (
            locks.acquire((7, 8)).await,
            LockKey::from_pair(7, 8).unwrap(),
        ),
    ] {
        assert_eq!(*guard.unwrap().key(), expected);
    }
    let locks = Locks::builder(MemoryBackend::new()).namespace("").build();
    let refused = locks.acquire("job").await;
    assert!(
        matches!(refused, Err(Error::InvalidKey(InvalidKey::Namespace))),
        "{refused:?}"
    );
}

proptest! {
    /// By the way that SQL goes: text of hexadecimal digits, the first sixteen of them.
    #[test]
    fn ids_follow_the_formula(name in "[^\0]{1,128}", namespace in "[^\0]{1,32}") {
        let plain = LockKey::new(name.as_str()).unwrap();
        prop_assert_eq!(plain.id(), AdvisoryId::Bigint(formula(&name)));
        let text = format!("{}:{namespace}{name}", namespace.len());
        let spaced = LockKey::in_namespace(namespace.as_str(), name.as_str()).unwrap();
        prop_assert_eq!(spaced.id(), AdvisoryId::Bigint(formula(&text)));
        prop_assert_ne!(plain.id(), spaced.id());
    }

    #[test]
    fn names_come_back(name in "[^\0]{1,128}") {
        let key = LockKey::new(name.as_str()).unwrap();
        prop_assert_eq!(key.name(), Some(name.as_str()));
        prop_assert_eq!(key.to_string(), name.as_str());
        prop_assert_eq!(key.to_string().parse::<LockKey>().unwrap(), key);
    }

    /// Where the namespace ends is part of the id.
    #[test]
    fn namespaces_do_not_run_into_names(text in "[a-z:0-9]{3,40}", one in 1..40_usize, other in 1..40_usize) {
        let (one, other) = (one.min(text.len() - 1), other.min(text.len() - 1));
        prop_assume!(one != other);
        let split = |at| {
            let (namespace, name) = text.split_at(at);
            LockKey::in_namespace(namespace, name).unwrap().id()
        };
        prop_assert_ne!(split(one), split(other));
    }

    #[test]
    fn numbers_are_taken_as_they_are(id: i64, class: i32, object: i32) {
        prop_assert_eq!(LockKey::from_id(id).id(), AdvisoryId::Bigint(id));
        match LockKey::from_pair(class, object) {
            Ok(key) => prop_assert_eq!(key.id(), AdvisoryId::Pair(class, object)),
            Err(_) => prop_assert!(RESERVED_PAIR_CLASSES.contains(&class)),
        }
    }
}

fn formula(text: &str) -> i64 {
    let mut hex = String::new();
    for byte in Md5::digest(text.as_bytes()) {
        write!(hex, "{byte:02x}").unwrap();
    }
    u64::from_str_radix(&hex[..16], 16).unwrap().cast_signed()
}
