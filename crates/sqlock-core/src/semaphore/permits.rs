use std::sync::Arc;

use crate::{Error, InvalidKey, LockKey, Result};

/// The namespace of all permits, so that no lock of the same name is one.
const NAMESPACE: &str = "sqlock.semaphore";
const MOST_PERMITS: usize = 1000;

/// The keys of a semaphore's permits, each of which is a lock.
///
/// A permit's number does not tell how many there are: where two programs disagree about that, the
/// larger number holds, and not the sum.
pub(super) fn permits_of(key: &LockKey, count: usize) -> Result<Arc<[LockKey]>> {
    if !(1..=MOST_PERMITS).contains(&count) {
        return Err(Error::InvalidOption {
            option: "permits",
            reason: format!("{count} is not between 1 and {MOST_PERMITS}"),
        });
    }
    let permits = (0..count).map(|number| permit_of(key, number));
    Ok(permits.collect::<Result<_, InvalidKey>>()?)
}

/// No two keys and numbers give the same name: the number ends at the first character that is no
/// digit, which tells the kind of the key.
fn permit_of(key: &LockKey, number: usize) -> Result<LockKey, InvalidKey> {
    let name = match (key.namespace(), key.name()) {
        (None, Some(name)) => format!("{number}/{name}"),
        (Some(space), Some(name)) => format!("{number}@{}:{space}{name}", space.len()),
        (_, None) => format!("{number}#{}", key.id()),
    };
    LockKey::in_namespace(NAMESPACE, name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = LockKey> {
        let part = "[0-9#/@:a]{1,4}";
        prop_oneof![
            part.prop_map(|name| LockKey::new(name).unwrap()),
            (part, part).prop_map(|(space, name)| LockKey::in_namespace(space, name).unwrap()),
            (-9i64..99).prop_map(LockKey::from_id),
            (0i32..9, 0i32..9).prop_map(|(a, b)| LockKey::from_pair(a, b).unwrap()),
        ]
    }

    proptest! {
        #[test]
        fn no_two_semaphores_share_a_permit(keys in prop::collection::vec((key(), 0usize..12), 1..200)) {
            let mut seen: HashMap<LockKey, (LockKey, usize)> = HashMap::new();
            for (key, number) in keys {
                let permit = permit_of(&key, number).unwrap();
                let first = seen.entry(permit).or_insert_with(|| (key.clone(), number));
                prop_assert_eq!(first, &(key, number));
            }
        }
    }

    #[test]
    fn a_smaller_semaphore_has_the_first_permits_of_a_larger_one() {
        let key = LockKey::new("imports").unwrap();
        let (three, five) = (permits_of(&key, 3).unwrap(), permits_of(&key, 5).unwrap());
        assert_eq!(three[..], five[..3]);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let key = LockKey::new("imports").unwrap();
        for count in [0, MOST_PERMITS + 1, usize::MAX] {
            let refused = permits_of(&key, count);
            assert!(matches!(refused, Err(Error::InvalidOption { .. })));
        }
        let long = LockKey::new("x".repeat(512)).unwrap();
        assert!(matches!(permits_of(&long, 1), Err(Error::InvalidKey(_))));
    }
}
