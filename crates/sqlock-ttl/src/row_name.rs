use std::sync::Arc;

use sqlock_core::LockKey;

/// A key as the table's primary key. No two keys have the same.
///
/// A name stands for itself, so that the table reads well. A key in a namespace is written
/// `length:namespace` and the name, a number `#42`, and a name that would look like one of those
/// gets an empty namespace before it.
pub(crate) fn row_name(key: &LockKey) -> Arc<str> {
    match (key.namespace(), key.name()) {
        (Some(namespace), Some(name)) => format!("{}:{namespace}{name}", namespace.len()).into(),
        (None, Some(name)) if is_ambiguous(name) => format!("0:{name}").into(),
        (_, Some(name)) => name.into(),
        (_, None) => format!("#{}", key.id()).into(),
    }
}

fn is_ambiguous(name: &str) -> bool {
    let after_digits = name.trim_start_matches(|c: char| c.is_ascii_digit());
    name.starts_with('#') || (after_digits.len() < name.len() && after_digits.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = LockKey> {
        let part = "[0-9#:a]{1,4}";
        prop_oneof![
            part.prop_map(|name| LockKey::new(name).unwrap()),
            (part, part).prop_map(|(space, name)| LockKey::in_namespace(space, name).unwrap()),
            (-9i64..99).prop_map(LockKey::from_id),
            (0i32..9, 0i32..9).prop_map(|(a, b)| LockKey::from_pair(a, b).unwrap()),
        ]
    }

    proptest! {
        #[test]
        fn no_two_keys_share_a_row(keys in prop::collection::vec(key(), 1..200)) {
            let mut rows: HashMap<Arc<str>, LockKey> = HashMap::new();
            for key in keys {
                let row = row_name(&key);
                prop_assert_eq!(rows.entry(row).or_insert_with(|| key.clone()), &key);
            }
        }
    }

    #[test]
    fn names_stand_for_themselves() {
        let row = |key: Result<LockKey, _>| row_name(&key.unwrap());
        assert_eq!(&*row(LockKey::new("daily-report")), "daily-report");
        assert_eq!(&*row(LockKey::in_namespace("app", "job")), "3:appjob");
        assert_eq!(&*row(LockKey::new("3:appjob")), "0:3:appjob");
        assert_eq!(&*row(LockKey::from_pair(7, 42)), "#7,42");
    }
}
