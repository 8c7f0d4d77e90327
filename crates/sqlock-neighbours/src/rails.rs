use sqlock_core::LockKey;

const SALT: i64 = 2_053_462_845;

/// The lock under which [Rails] migrates this database: `rails db:migrate`.
///
/// The id is the CRC-32 of what `current_database()` says, times Active Record's salt.
///
/// Compared with Active Record 6.1.
///
/// ```
/// # use sqlock_core::AdvisoryId;
/// let key = sqlock_neighbours::rails_migrations("app");
/// assert_eq!(key.id(), AdvisoryId::Bigint(6939591962871035475));
/// ```
///
/// [Rails]: https://guides.rubyonrails.org/active_record_migrations.html
#[must_use]
pub fn rails_migrations(database: &str) -> LockKey {
    let hash = i64::from(crc32fast::hash(database.as_bytes()));
    LockKey::from_id(SALT * hash) // 31 bits times 32
}
