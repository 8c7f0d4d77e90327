//! How locks are written on the server: the numbers of keys, and those of waiting.

use sqlock_core::{AdvisoryId, Mode, RESERVED_PAIR_CLASSES};

/// The first number of the pairs that are wait slots.
pub(crate) const SLOT_CLASS: i32 = *RESERVED_PAIR_CLASSES.start();
/// The first number of the pairs that are gates.
pub(crate) const GATE_CLASS: i32 = SLOT_CLASS + 1;

/// A lock that a session holds, by the server's own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum HeldOnServer {
    Key(AdvisoryId, Mode),
    Slot(Slot),
    Gate(Slot),
}

/// The second number of a key's wait slot and gate.
///
/// Keys that share one, which at 32 bits is rare, wake each other up for nothing, and a writer that
/// waits for one keeps new readers of the other out meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slot(pub(crate) i32);

pub(crate) trait OnServer {
    fn slot(self) -> Slot;
    /// Both kinds as one number; a pair's halves are the high and the low 32 bits.
    fn packed(self) -> i64;
}

impl OnServer for AdvisoryId {
    fn slot(self) -> Slot {
        let packed = self.packed();
        let [a, b, c, d, e, f, g, h] = packed.to_be_bytes();
        let (high, low) = (
            i32::from_be_bytes([a, b, c, d]),
            i32::from_be_bytes([e, f, g, h]),
        );
        // the rotation keeps small pairs such as (1, 2) and (2, 1) apart
        Slot(match self {
            Self::Bigint(_) => high ^ low,
            Self::Pair(..) => !(high.rotate_left(16) ^ low),
        })
    }

    fn packed(self) -> i64 {
        match self {
            Self::Bigint(id) => id,
            Self::Pair(class, object) => from_halves(class, object),
        }
    }
}

/// From a row of `pg_locks`, whose numbers are unsigned and whose `objsubid` tells the kind.
pub(crate) fn from_pg_locks(
    class: u32,
    object: u32,
    kind: i16,
    mode: Mode,
) -> Option<HeldOnServer> {
    let (class, object) = (class.cast_signed(), object.cast_signed());
    match kind {
        1 => Some(HeldOnServer::Key(
            AdvisoryId::Bigint(from_halves(class, object)),
            mode,
        )),
        2 if class == SLOT_CLASS => Some(HeldOnServer::Slot(Slot(object))),
        2 if class == GATE_CLASS => Some(HeldOnServer::Gate(Slot(object))),
        2 => Some(HeldOnServer::Key(AdvisoryId::Pair(class, object), mode)),
        _ => None,
    }
}

fn from_halves(high: i32, low: i32) -> i64 {
    (i64::from(high) << 32) | i64::from(low.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pg_locks_gives_the_key_back(id: i64) {
            let [a, b, c, d, e, f, g, h] = id.to_be_bytes();
            let halves = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
            let key = from_pg_locks(halves.0, halves.1, 1, Mode::Shared);
            prop_assert_eq!(key, Some(HeldOnServer::Key(AdvisoryId::Bigint(id), Mode::Shared)));
        }

        #[test]
        fn a_pair_packs_and_unpacks(class: i32, object: i32) {
            let packed = AdvisoryId::Pair(class, object).packed();
            // as the statement unpacks it
            prop_assert_eq!(i32::try_from(packed >> 32), Ok(class));
            prop_assert_eq!(i32::try_from(packed << 32 >> 32), Ok(object));
        }
    }

    #[test]
    fn slots_are_a_pinned_part_of_the_protocol() {
        assert_eq!(AdvisoryId::Bigint(0x0000_0001_0000_0002).slot(), Slot(3));
        assert_eq!(AdvisoryId::Pair(0, 0).slot(), Slot(-1));
        assert_ne!(AdvisoryId::Pair(1, 2).slot(), AdvisoryId::Pair(2, 1).slot());
    }
}
