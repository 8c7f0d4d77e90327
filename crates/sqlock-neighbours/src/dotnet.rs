use sha1::{Digest, Sha1};
use sqlock_core::{InvalidKey, LockKey};

/// 9 characters of 7 bits and one bit more.
const MAX_CHARACTERS: usize = 9;
const CHARACTER_BITS: usize = 7;

/// The lock of .NET's [DistributedLock]: `new PostgresAdvisoryLockKey("name", allowHashing: true)`.
///
/// So are its names read, also by `PostgresDistributedSynchronizationProvider`:
///
/// | name | key |
/// |---|---|
/// | up to 9 ASCII characters | a pair, of 7 bits a character |
/// | 8 hexadecimal digits, a comma, 8 more | that pair |
/// | 16 hexadecimal digits | that `bigint` |
/// | others | a `bigint`: the first 8 bytes of the SHA-1, little-endian |
///
/// Without `allowHashing`, .NET refuses the others, and reads the rest in the same way.
///
/// Compared with version 1.3 of DistributedLock.Postgres.
///
/// # Errors
///
/// [`InvalidKey::ContainsNul`] where the name contains NUL, and [`InvalidKey::ReservedPair`] where its
/// pair lies in [`RESERVED_PAIR_CLASSES`](sqlock_core::RESERVED_PAIR_CLASSES).
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::dotnet("billing")?;
/// assert_eq!(key.id(), AdvisoryId::Pair(-978884915, 1001635839));
/// let key = sqlock_neighbours::dotnet("daily-report")?;
/// assert_eq!(key.id(), AdvisoryId::Bigint(3762250416075791230));
/// # Ok::<(), sqlock_core::InvalidKey>(())
/// ```
///
/// [DistributedLock]: https://github.com/madelson/DistributedLock
pub fn dotnet(name: &str) -> Result<LockKey, InvalidKey> {
    if name.contains('\0') {
        return Err(InvalidKey::ContainsNul);
    }
    if name.is_ascii() && name.len() <= MAX_CHARACTERS {
        let (first, second) = halves(packed(name));
        return LockKey::from_pair(first, second);
    }
    if let Some((first, second)) = name.split_once(',')
        && let (Some(first), Some(second)) = (hex_of_8(first), hex_of_8(second))
    {
        return LockKey::from_pair(first.cast_signed(), second.cast_signed());
    }
    if let Some((first, second)) = name.split_at_checked(8)
        && let (Some(first), Some(second)) = (hex_of_8(first), hex_of_8(second))
    {
        let id = u64::from(first) << 32 | u64::from(second);
        return Ok(LockKey::from_id(id.cast_signed()));
    }
    Ok(LockKey::from_id(hash(name)))
}

/// The characters from the top, a 0, and 1s: so names of different lengths differ.
fn packed(name: &str) -> u64 {
    let characters = name
        .bytes()
        .fold(0, |bits, byte| bits << CHARACTER_BITS | u64::from(byte));
    let rest = CHARACTER_BITS * (MAX_CHARACTERS - name.len());
    characters << 1 << rest | ((1 << rest) - 1)
}

fn halves(id: u64) -> (i32, i32) {
    let [a, b, c, d, e, f, g, h] = id.to_be_bytes();
    let first = i32::from_be_bytes([a, b, c, d]);
    (first, i32::from_be_bytes([e, f, g, h]))
}

/// Rust's own parser takes a sign, too.
fn hex_of_8(digits: &str) -> Option<u32> {
    let are_digits = digits.len() == 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u32::from_str_radix(digits, 16).ok())?
}

fn hash(name: &str) -> i64 {
    let digest: [u8; 20] = Sha1::digest(name).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}
