use sqlock_core::LockKey;

const START: u32 = 0x9e37_79b9 + 3_923_095;
const BLOCK: usize = 12;

/// The lock of plain SQL's `pg_advisory_lock(hashtext('name'))`, as in much code of all languages.
///
/// `hashtext` gives 32 bits, so that among eighty thousand names two are likely to be one lock. It is
/// no documented function of PostgreSQL's, and hashes the name's bytes in the database's encoding, here
/// UTF-8, on a little-endian server, as are those on x86 and ARM.
///
/// Compared with PostgreSQL 15.
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::hashtext("daily-report");
/// assert_eq!(key.id(), AdvisoryId::Bigint(1067228265));
/// ```
#[must_use]
pub fn hashtext(name: &str) -> LockKey {
    let [_, _, hash] = jenkins(name.as_bytes());
    LockKey::from_id(i64::from(hash.cast_signed()))
}

/// The lock of plain SQL's `pg_advisory_lock(hashtextextended('name', 0))`.
///
/// As [`hashtext`], with 64 bits.
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::hashtextextended("daily-report");
/// assert_eq!(key.id(), AdvisoryId::Bigint(3601636533269732457));
/// ```
#[must_use]
pub fn hashtextextended(name: &str) -> LockKey {
    let [_, high, low] = jenkins(name.as_bytes());
    LockKey::from_id((u64::from(high) << 32 | u64::from(low)).cast_signed())
}

/// Bob Jenkins' lookup3, with PostgreSQL's start value, and the length beside the last bytes.
fn jenkins(bytes: &[u8]) -> [u32; 3] {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX); // a text has 1 GiB at most
    let mut state = [START.wrapping_add(length); 3];
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for block in blocks {
        state = mix(add(state, block));
    }
    // The lowest byte of the third word is the length's, so that the rest begins beside it.
    let mut last = [0; BLOCK];
    for (at, byte) in rest.iter().enumerate() {
        last[if at < 8 { at } else { at + 1 }] = *byte;
    }
    finish(add(state, &last))
}

fn add([a, b, c]: [u32; 3], block: &[u8; BLOCK]) -> [u32; 3] {
    let word =
        |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    [
        a.wrapping_add(word(0)),
        b.wrapping_add(word(4)),
        c.wrapping_add(word(8)),
    ]
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for turns in [[4, 6, 8], [16, 19, 4]] {
        a = a.wrapping_sub(c) ^ c.rotate_left(turns[0]);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(turns[1]);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(turns[2]);
        b = b.wrapping_add(a);
    }
    [a, b, c]
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    [a, b, c]
}
