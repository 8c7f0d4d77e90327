use sqlock_core::LockKey;

/// Its name in ASCII, as a number.
const FLYWAY: i64 = 0x466c_7977_6179;

/// The lock under which Java's [Flyway] migrates.
///
/// `schema` and `table` are those of the history of migrations: by default the connection's schema,
/// and `"flyway_schema_history"`. The id is Flyway's own number plus Java's hash of the table's name
/// with its schema, both quoted.
///
/// Compared with version 13; the number is the same since 5.0. Whether Flyway holds the lock for a
/// transaction or a session is a setting of its own, and makes no difference.
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::flyway("public", "flyway_schema_history");
/// assert_eq!(key.id(), AdvisoryId::Bigint(77433833903597));
/// ```
///
/// [Flyway]: https://documentation.red-gate.com/flyway
#[must_use]
pub fn flyway(schema: &str, table: &str) -> LockKey {
    let name = format!("{}.{}", quoted(schema), quoted(table));
    LockKey::from_id(FLYWAY + i64::from(java_hash(&name)))
}

fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// `String.hashCode()`: over UTF-16, modulo 2^32.
fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}
