use crc32fast::Hasher;
use sqlock_core::LockKey;

const SALT: u32 = 1_486_364_155;

/// The lock under which Go's [golang-migrate] migrates.
///
/// `schema` and `table` are those of the table of versions: by default what `current_schema()` says,
/// and `"schema_migrations"`. The id is the CRC-32 of schema, table and database with NUL between
/// them, times a salt, of which 32 bits are kept.
///
/// Compared with version 4.18; since 4.15 the table counts. It holds for its PostgreSQL and pgx drivers.
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::golang_migrate("app", "public", "schema_migrations");
/// assert_eq!(key.id(), AdvisoryId::Bigint(1787120056));
/// ```
///
/// [golang-migrate]: https://github.com/golang-migrate/migrate
#[must_use]
pub fn golang_migrate(database: &str, schema: &str, table: &str) -> LockKey {
    let mut hash = Hasher::new();
    for part in [schema, "\0", table, "\0", database] {
        hash.update(part.as_bytes());
    }
    LockKey::from_id(i64::from(hash.finalize().wrapping_mul(SALT)))
}
