//! Values that try to be more than values.

use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use sqlock::LockKey;

use crate::{support::execute, world::everywhere};

fn text() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "'",
        "''",
        "\\",
        "\\'",
        "\"",
        "$$",
        "$a$",
        "--",
        "/*",
        ";",
        "E'",
        "\n",
        "\u{feff}",
        "😀",
        "%",
        "'); drop table sqlock_leases; --",
        "\\\\'",
        "x",
    ]);
    prop_oneof![
        prop::collection::vec(nasty, 1..8).prop_map(|parts| parts.concat()),
        "[^\0]{1,40}",
    ]
}

/// Whatever the server's idea of a string literal is.
#[test]
fn names_labels_and_payloads_arrive_as_they_are() {
    everywhere(async |world| {
        let mut connection = world.connect().await;
        let locks = world.node();
        for conforming in ["on", "off"] {
            let alter = format!(
                "alter database \"{}\" set standard_conforming_strings = {conforming}",
                world.name()
            );
            execute(&mut connection, &alter).await;
            let locks = if conforming == "on" {
                locks.clone()
            } else {
                world.node()
            };
            let mut values = Vec::new();
            let mut runner = TestRunner::default();
            for _ in 0..60 {
                let tree = (text(), text(), text()).new_tree(&mut runner).unwrap();
                values.push(tree.current());
            }
            for (name, label, payload) in values {
                let key = LockKey::new(name.as_str()).unwrap();
                let lock = locks
                    .lock(&key)
                    .label(label.as_str())
                    .payload(payload.as_str());
                let lease = lock.try_acquire().await.unwrap().expect("it is free");
                let record = locks
                    .backend()
                    .lease(&key)
                    .await
                    .unwrap()
                    .expect("it is held");
                assert_eq!(record.label.as_deref(), Some(label.as_str()));
                assert_eq!(record.payload.as_deref(), Some(payload.as_str()));
                assert_eq!(Some(record.token), lease.token());
                lease.release().await.unwrap();
                assert_eq!(locks.backend().lease(&key).await.unwrap(), None);
            }
        }
    });
}

/// What PostgreSQL's text cannot hold is refused, and nothing is held.
#[test]
fn what_cannot_be_stored_is_refused() {
    everywhere(async |world| {
        let locks = world.node();
        let too_long = "x".repeat(65_537);
        for payload in ["a\0b", &too_long] {
            let lock = locks.lock("job").payload(payload);
            lock.try_acquire().await.unwrap_err();
        }
        locks
            .lock("job")
            .label("a\0b")
            .try_acquire()
            .await
            .unwrap_err();
        assert_eq!(locks.backend().leases().await.unwrap(), []);
    });
}
