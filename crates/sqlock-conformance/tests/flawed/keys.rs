use sqlock_core::{AdvisoryId, LockKey, Request};

use super::Flaw;

/// The keys that are really locked.
pub(super) fn locked(flaw: Flaw, request: &Request) -> Vec<LockKey> {
    let flawed = |key: &LockKey| flawed(flaw, key).unwrap_or_else(|| key.clone());
    request.keys().iter().map(flawed).collect()
}

fn flawed(flaw: Flaw, key: &LockKey) -> Option<LockKey> {
    let named = |name: String| LockKey::new(name).ok();
    match (flaw, key.name(), key.id()) {
        (Flaw::FoldsCase, Some(name), _) => named(name.to_lowercase()),
        (Flaw::TruncatesNames, Some(name), _) => named(name.chars().take(100).collect()),
        (Flaw::DropsNamespaces, Some(name), _) => named(name.to_owned()),
        (Flaw::NamesApartFromNumbers, Some(name), _) => LockKey::in_namespace("names", name).ok(),
        (Flaw::PairsAreNumbers, _, AdvisoryId::Pair(class, object)) => Some(LockKey::from_id(
            (i64::from(class) << 32) | i64::from(object),
        )),
        (Flaw::NumbersOf32Bits, None, AdvisoryId::Bigint(id)) => {
            Some(LockKey::from_id(id & 0xffff_ffff))
        }
        (Flaw::OneKeyForAll, ..) => Some(LockKey::from_id(1)),
        _ => None,
    }
}
