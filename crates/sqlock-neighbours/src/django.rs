use sha2::{Digest, Sha256};
use sqlock_core::LockKey;

/// The lock of Python's [django-pglock]: `pglock.advisory("name")`.
///
/// The id is the first 8 bytes of the name's SHA-256, little-endian. Where `pglock.advisory` is given
/// an `int`, use that: [`LockKey::from_id`]. As a decorator without an argument it locks the function's
/// module and name, as in `"app.tasks.report"`.
///
/// Compared with version 1.8.
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::django_pglock("daily-report");
/// assert_eq!(key.id(), AdvisoryId::Bigint(-2551168849325057047));
/// ```
///
/// [django-pglock]: https://github.com/Opus10/django-pglock
#[must_use]
pub fn django_pglock(name: &str) -> LockKey {
    let digest: [u8; 32] = Sha256::digest(name).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    LockKey::from_id(i64::from_le_bytes([a, b, c, d, e, f, g, h]))
}
