//! What sessions tell each other: the keys that were released while somebody waited.

use sqlock_core::AdvisoryId;
use sqlx::postgres::PgNotification;

/// The channel. Plain SQL that frees a lock may wake its waiters: `NOTIFY sqlock, '<id>'`.
pub(crate) const CHANNEL: &str = "sqlock";

/// A payload ends at 8,000 bytes; a key takes 24 at most.
const KEYS_PER_PAYLOAD: usize = 256;

/// Keys as text, separated by blanks.
pub(crate) fn payloads(keys: &[AdvisoryId]) -> impl Iterator<Item = String> + '_ {
    keys.chunks(KEYS_PER_PAYLOAD).map(|keys| {
        let texts: Vec<_> = keys.iter().map(AdvisoryId::to_string).collect();
        texts.join(" ")
    })
}

/// The keys in a notification of another session. What cannot be read is somebody else's.
pub(crate) fn keys_from(notification: &PgNotification, own_pid: i32) -> Vec<AdvisoryId> {
    if u32::try_from(own_pid).is_ok_and(|own| own == notification.process_id()) {
        return Vec::new();
    }
    parse(notification.payload())
}

fn parse(payload: &str) -> Vec<AdvisoryId> {
    payload
        .split_ascii_whitespace()
        .filter_map(|text| match text.split_once(',') {
            None => text.parse().ok().map(AdvisoryId::Bigint),
            Some((class, object)) => {
                Some(AdvisoryId::Pair(class.parse().ok()?, object.parse().ok()?))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id() -> impl Strategy<Value = AdvisoryId> {
        prop_oneof![
            any::<i64>().prop_map(AdvisoryId::Bigint),
            any::<(i32, i32)>().prop_map(|(a, b)| AdvisoryId::Pair(a, b)),
        ]
    }

    proptest! {
        #[test]
        fn payloads_round_trip_and_fit(keys in prop::collection::vec(id(), 0..600)) {
            let payloads: Vec<_> = payloads(&keys).collect();
            prop_assert!(payloads.iter().all(|payload| payload.len() < 8000));
            let read: Vec<_> = payloads.iter().flat_map(|payload| parse(payload)).collect();
            prop_assert_eq!(read, keys);
        }

        #[test]
        fn strange_payloads_are_ignored(payload: String) {
            parse(&payload);
        }
    }
}
