use crate::{InvalidKey, LockKey};

/// What can name a lock: `&str`, `String`, `i64`, `(i32, i32)` or a [`LockKey`].
///
/// A trait of our own, and not `TryInto<LockKey>`, so that a wrong type gets an answer in our
/// words and an invalid name surfaces at the verb.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot name a lock",
    label = "not a lock key",
    note = "a lock is named by `&str`, `String`, `i64`, `(i32, i32)` or a `LockKey`; use `LockKey::from_id(n.into())` for other integers"
)]
pub trait IntoLockKey {
    /// The key.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] where the value cannot name a lock.
    fn into_lock_key(self) -> Result<LockKey, InvalidKey>;
}

impl IntoLockKey for LockKey {
    fn into_lock_key(self) -> Result<LockKey, InvalidKey> {
        Ok(self)
    }
}

impl IntoLockKey for &LockKey {
    fn into_lock_key(self) -> Result<LockKey, InvalidKey> {
        Ok(self.clone())
    }
}

impl IntoLockKey for &str {
    fn into_lock_key(self) -> Result<LockKey, InvalidKey> {
        LockKey::new(self)
    }
}

impl IntoLockKey for String {
    fn into_lock_key(self) -> Result<LockKey, InvalidKey> {
        LockKey::new(self)
    }
}

impl IntoLockKey for &String {
    fn into_lock_key(self) -> Result<LockKey, InvalidKey> {
        LockKey::new(self.as_str())
    }
}

impl IntoLockKey for i64 {
    fn into_lock_key(self) -> Result<LockKey, InvalidKey> {
        Ok(LockKey::from_id(self))
    }
}

impl IntoLockKey for (i32, i32) {
    fn into_lock_key(self) -> Result<LockKey, InvalidKey> {
        LockKey::from_pair(self.0, self.1)
    }
}

/// Several keys: any iterator over what can name a lock.
pub trait IntoLockKeys {
    /// The keys, in the order given.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] where one of them cannot name a lock.
    fn into_lock_keys(self) -> Result<Vec<LockKey>, InvalidKey>;
}

impl<I> IntoLockKeys for I
where
    I: IntoIterator,
    I::Item: IntoLockKey,
{
    fn into_lock_keys(self) -> Result<Vec<LockKey>, InvalidKey> {
        self.into_iter().map(IntoLockKey::into_lock_key).collect()
    }
}

/// For backends: the keys of one request, in the order in which they are to be taken: by id, so that
/// two requests cannot wait for each other. Doubles are dropped; a name and a number can be one lock.
///
/// # Errors
///
/// [`InvalidKey::NoKeys`] where there is none.
pub fn in_lock_order(mut keys: Vec<LockKey>) -> Result<Vec<LockKey>, InvalidKey> {
    keys.sort_by_key(LockKey::id);
    keys.dedup_by_key(|key| key.id());
    if keys.is_empty() {
        return Err(InvalidKey::NoKeys);
    }
    Ok(keys)
}
