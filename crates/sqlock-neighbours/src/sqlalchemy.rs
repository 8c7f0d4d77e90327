use blake2::{Blake2b, Digest, digest::consts::U8};
use sqlock_core::LockKey;

/// The lock of Python's [sqlalchemy-dlock]: `create_sadlock(connection, "name")`.
///
/// The id is the name's hash by `blake2b`, of 8 bytes, read in the byte order of the machine that
/// Python runs on: here it is little-endian, as on x86 and ARM. `bytes` are hashed as they are. Where `create_sadlock` is given an `int`, use that: [`LockKey::from_id`].
///
/// Compared with version 0.9; 0.1 to 0.8 name the same hash.
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::sqlalchemy_dlock("daily-report");
/// assert_eq!(key.id(), AdvisoryId::Bigint(3660988262889610215));
/// ```
///
/// [sqlalchemy-dlock]: https://github.com/tanbro/sqlalchemy-dlock
#[must_use]
pub fn sqlalchemy_dlock(name: impl AsRef<[u8]>) -> LockKey {
    let digest: [u8; 8] = Blake2b::<U8>::digest(name).into();
    LockKey::from_id(i64::from_le_bytes(digest))
}
