use std::{fmt, ops::RangeInclusive, sync::Arc};

use md5::{Digest, Md5};

/// The first numbers of pairs that sqlock uses for its own bookkeeping on the server.
///
/// [`LockKey::from_pair`] refuses them.
pub const RESERVED_PAIR_CLASSES: RangeInclusive<i32> = 0x7371_6c00..=0x7371_6cff;

const MAX_NAME_BYTES: usize = 512;
const MAX_NAMESPACE_BYTES: usize = 128;

/// Why a value cannot name a lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// The name is the empty string, which is nearly always an unset variable.
    #[error("the name is empty")]
    Empty,
    /// PostgreSQL's text cannot hold a NUL, so that SQL could not compute the same id.
    #[error("the name contains a NUL character")]
    ContainsNul,
    /// Names are at most 512 bytes, so that they fit an index row and a notification.
    #[error("the name has {bytes} bytes and at most {max} are allowed; use a hash of it")]
    TooLong {
        /// The length of the name.
        bytes: usize,
        /// The longest that is allowed.
        max: usize,
    },
    /// A namespace is empty, too long or contains a NUL.
    #[error("the namespace must have 1 to {MAX_NAMESPACE_BYTES} bytes and no NUL character")]
    Namespace,
    /// The pair lies in [`RESERVED_PAIR_CLASSES`].
    #[error("pairs that begin with {class} are reserved for sqlock's own bookkeeping")]
    ReservedPair {
        /// The first number of the pair.
        class: i32,
    },
    /// A request for several keys named none.
    #[error("no keys were given")]
    NoKeys,
}

/// What PostgreSQL's advisory lock functions are called with.
///
/// The two kinds never conflict with each other ([PostgreSQL manual, 9.28.10]).
///
/// [PostgreSQL manual, 9.28.10]: https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-ADVISORY-LOCKS
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdvisoryId {
    /// `pg_advisory_lock(bigint)`
    Bigint(i64),
    /// `pg_advisory_lock(int, int)`
    Pair(i32, i32),
}

impl fmt::Display for AdvisoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bigint(id) => write!(f, "{id}"),
            Self::Pair(class, object) => write!(f, "{class},{object}"),
        }
    }
}

/// The name of a lock, with the id that it has in PostgreSQL.
///
/// A name's id is the first 8 bytes of its MD5, big-endian, so that plain SQL takes part:
///
/// ```
/// use sqlock_core::{AdvisoryId, LockKey};
///
/// // SELECT ('x' || md5('daily-report'))::bit(64)::bigint
/// let key = LockKey::new("daily-report")?;
/// assert_eq!(key.id(), AdvisoryId::Bigint(2067039765893743488));
///
/// // SELECT ('x' || md5(octet_length('billing') || ':' || 'billing' || 'daily-report'))::bit(64)::bigint
/// let key = LockKey::in_namespace("billing", "daily-report")?;
/// assert_eq!(key.id(), AdvisoryId::Bigint(1145736627428684131));
///
/// // the numbers that other programs lock directly
/// assert_eq!(LockKey::from_id(42).id(), AdvisoryId::Bigint(42));
/// assert_eq!(LockKey::from_pair(7, 42)?.id(), AdvisoryId::Pair(7, 42));
/// # Ok::<(), sqlock_core::InvalidKey>(())
/// ```
///
/// (SQL's `md5` hashes the text in the database's encoding; the ids agree where that is UTF-8, or
/// the name is ASCII.) Two names whose ids are equal are one lock to the advisory backends; at
/// 64 bits that takes about five billion names to become likely.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey {
    id: AdvisoryId,
    namespace: Option<Arc<str>>,
    name: Option<Arc<str>>,
}

impl LockKey {
    /// The lock of this name.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] where the name is empty, contains NUL or is longer than 512 bytes.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, InvalidKey> {
        let name = name.into();
        check_name(&name)?;
        Ok(Self {
            id: advisory_id(&[name.as_bytes()]),
            namespace: None,
            name: Some(name),
        })
    }

    /// The lock of this name in a namespace of its own.
    ///
    /// Equal names in different namespaces are different locks. The id is that of
    /// `md5(octet_length(namespace) || ':' || namespace || name)`.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] as for [`LockKey::new`], and where the namespace is empty, contains NUL or
    /// is longer than 128 bytes.
    pub fn in_namespace(
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Result<Self, InvalidKey> {
        let (namespace, name) = (namespace.into(), name.into());
        check_namespace(&namespace)?;
        check_name(&name)?;
        let length = format!("{}:", namespace.len());
        let id = advisory_id(&[length.as_bytes(), namespace.as_bytes(), name.as_bytes()]);
        Ok(Self {
            id,
            namespace: Some(namespace),
            name: Some(name),
        })
    }

    /// The lock of `pg_advisory_lock(id)`.
    #[must_use]
    pub const fn from_id(id: i64) -> Self {
        Self {
            id: AdvisoryId::Bigint(id),
            namespace: None,
            name: None,
        }
    }

    /// The lock of `pg_advisory_lock(class, object)`.
    ///
    /// # Errors
    ///
    /// [`InvalidKey::ReservedPair`] where `class` lies in [`RESERVED_PAIR_CLASSES`].
    pub fn from_pair(class: i32, object: i32) -> Result<Self, InvalidKey> {
        if RESERVED_PAIR_CLASSES.contains(&class) {
            return Err(InvalidKey::ReservedPair { class });
        }
        Ok(Self {
            id: AdvisoryId::Pair(class, object),
            namespace: None,
            name: None,
        })
    }

    /// What PostgreSQL's advisory lock functions are called with.
    #[must_use]
    pub const fn id(&self) -> AdvisoryId {
        self.id
    }

    /// The name, where the key was made of one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The namespace, where there is one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The same name in `namespace`; keys that are numbers, or have a namespace, stay as they are.
    pub(crate) fn with_default_namespace(self, namespace: &Arc<str>) -> Result<Self, InvalidKey> {
        match (&self.namespace, &self.name) {
            (None, Some(name)) => Self::in_namespace(Arc::clone(namespace), Arc::clone(name)),
            _ => Ok(self),
        }
    }
}

/// The name, with its namespace before it, or the number.
impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, "{namespace}:{name}"),
            (_, Some(name)) => f.write_str(name),
            _ => self.id.fmt(f),
        }
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockKey({self} = {})", self.id)
    }
}

impl std::str::FromStr for LockKey {
    type Err = InvalidKey;

    fn from_str(name: &str) -> Result<Self, InvalidKey> {
        Self::new(name)
    }
}

fn check_name(name: &str) -> Result<(), InvalidKey> {
    if name.is_empty() {
        return Err(InvalidKey::Empty);
    }
    if name.contains('\0') {
        return Err(InvalidKey::ContainsNul);
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(InvalidKey::TooLong {
            bytes: name.len(),
            max: MAX_NAME_BYTES,
        });
    }
    Ok(())
}

fn check_namespace(namespace: &str) -> Result<(), InvalidKey> {
    let fits = (1..=MAX_NAMESPACE_BYTES).contains(&namespace.len());
    if fits && !namespace.contains('\0') {
        Ok(())
    } else {
        Err(InvalidKey::Namespace)
    }
}

fn advisory_id(parts: &[&[u8]]) -> AdvisoryId {
    let mut hash = Md5::new();
    for part in parts {
        hash.update(part);
    }
    let digest: [u8; 16] = hash.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    AdvisoryId::Bigint(i64::from_be_bytes([a, b, c, d, e, f, g, h]))
}
