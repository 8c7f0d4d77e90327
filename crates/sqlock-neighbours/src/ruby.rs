use sqlock_core::{InvalidKey, LockKey};

/// PostgreSQL's numbers are signed, and the gem keeps to those that are not negative.
const BITS: u32 = 0x7fff_ffff;

/// The lock of Ruby's [with_advisory_lock]: `Model.with_advisory_lock("name")`.
///
/// The key is a pair: the lower 31 bits of the name's CRC-32, and 0. That is few: among fifty thousand
/// names two are likely to be one lock. Where the gem is given an `Integer`, the pair is its lower 31
/// bits and 0: [`LockKey::from_pair`].
///
/// Compared with version 7.5; the rule is the same since 2.0.
///
/// # Errors
///
/// [`InvalidKey::ReservedPair`] for about one name in eight million, whose pair lies in
/// [`RESERVED_PAIR_CLASSES`](sqlock_core::RESERVED_PAIR_CLASSES).
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::with_advisory_lock("daily-report")?;
/// assert_eq!(key.id(), AdvisoryId::Pair(1055293738, 0));
/// # Ok::<(), sqlock_core::InvalidKey>(())
/// ```
///
/// [with_advisory_lock]: https://github.com/ClosureTree/with_advisory_lock
pub fn with_advisory_lock(name: &str) -> Result<LockKey, InvalidKey> {
    with_advisory_lock_prefixed(0, name)
}

/// The lock of Ruby's `with_advisory_lock` where the environment has `WITH_ADVISORY_LOCK_PREFIX`.
///
/// The prefix is the number that the variable begins with, 0 where it begins with none. Its lower 31
/// bits are the second of the pair; the name has the first, as in [`with_advisory_lock`].
///
/// # Errors
///
/// As for [`with_advisory_lock`].
pub fn with_advisory_lock_prefixed(prefix: i64, name: &str) -> Result<LockKey, InvalidKey> {
    let name = crc32fast::hash(name.as_bytes()) & BITS;
    let prefix = prefix & i64::from(BITS);
    LockKey::from_pair(
        name.cast_signed(),
        i32::try_from(prefix).unwrap_or_default(),
    )
}
