use hkdf::Hkdf;
use sha2::Sha256;
use sqlock_core::LockKey;

/// What binds the derived numbers to sqlx.
const INFO: &[u8] = b"SQLx (Rust) Postgres advisory lock";
const MIGRATIONS: i64 = 0x3d32_ad9e;

/// The lock of [sqlx]'s `PgAdvisoryLock::new("name")`.
///
/// The id is 8 bytes derived from the name by HKDF with SHA-256, little-endian. For
/// `PgAdvisoryLock::with_key`, use the numbers: [`LockKey::from_id`], [`LockKey::from_pair`].
///
/// Compared with versions 0.8 and 0.9.
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::sqlx("my first Postgres advisory lock!");
/// assert_eq!(key.id(), AdvisoryId::Bigint(-5560419505042474287));
/// ```
///
/// [sqlx]: https://docs.rs/sqlx/latest/sqlx/postgres/struct.PgAdvisoryLock.html
#[must_use]
pub fn sqlx(name: &str) -> LockKey {
    let mut bytes = [0; 8];
    // It refuses outputs of more than 255 digests only.
    let _ = Hkdf::<Sha256>::new(None, name.as_bytes()).expand(INFO, &mut bytes);
    LockKey::from_id(i64::from_le_bytes(bytes))
}

/// The lock under which [sqlx] migrates this database.
///
/// `sqlx::migrate!().run(…)` and `sqlx migrate run` hold it. The id is the CRC-32 of what
/// `current_database()` says, times 1026731422.
///
/// Compared with versions 0.8 and 0.9.
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::sqlx_migrations("app");
/// assert_eq!(key.id(), AdvisoryId::Bigint(3469795979745788610));
/// ```
///
/// [sqlx]: https://docs.rs/sqlx/latest/sqlx/migrate/struct.Migrator.html
#[must_use]
pub fn sqlx_migrations(database: &str) -> LockKey {
    let hash = i64::from(crc32fast::hash(database.as_bytes()));
    LockKey::from_id(MIGRATIONS * hash) // 30 bits times 32
}
